package cli

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// screen is a terminal with a shell in it, which tmux shows to the test.
type screen struct {
	t      *testing.T
	socket string
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// types waits for a text at the end of the screen and then presses keys, by the names that
// tmux gives them.
func (s *screen) types(after string, keys ...string) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		shown := strings.TrimSpace(s.tmux("capture-pane", "-p", "-J"))
		if strings.HasSuffix(shown, after) {
			break
		}
		if time.Now().After(end) {
			s.t.Fatalf("the screen does not end with %q:\n%s", after, shown)
		}
	}
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

// TestInitOnATerminal stops init by Ctrl-C, which leaves nothing, and then answers all eight
// questions. A run accepts what was written.
func TestInitOnATerminal(t *testing.T) {
	tmux := needs.Program(t, "tmux", "apt-get install tmux")
	_, server := newService(testKey, smallForm(), largeForm("orders", 450))
	defer server.Close()
	s, dir := &screen{t, filepath.Join(t.TempDir(), "tmux")}, t.TempDir()
	start := exec.CommandContext(t.Context(), tmux, "-S", s.socket, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "60", "-c", dir, "/bin/sh")
	start.Env = append(environment(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TZ=UTC", "GORACE="+raceOptions,
		"XDG_CACHE_HOME="+filepath.Join(dir, ".cache"), "FORMETL_API_KEY="+testKey)
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() }) //nolint:noctx // after the test's context
	s.types("", "PS1='rea''dy> '", "Enter")
	s.types("ready>", "formetl init --base-url "+server.URL+" --account acme; echo code $?", "Enter")
	s.types("[${env:FORMETL_API_KEY}]:", "Enter")
	s.types("[UTC]:", "C-c")
	s.types("code 130\nready>", "formetl init", "Enter")
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	s.types("Address of the service:", server.URL, "Enter")
	s.types("Account:", formservice.DefaultAccount, "Enter")
	s.types("[${env:FORMETL_API_KEY}]:", "Enter")
	s.types("[UTC]:", "America/Chicago", "Enter")
	s.types("every form:", "orders", "Enter")
	s.types("[file]:", "dataset", "Enter")
	s.types("[lake/{form}/]:", "Enter")
	s.types("[incremental]:", "Enter")
	s.types("named key beside it.\nready>", "formetl run orders.yaml --progress off && echo went''well", "Enter")
	s.types("wentwell\nready>", "exit", "Enter")
	if _, err := os.Stat(filepath.Join(dir, "lake", "orders", "_SUCCESS")); err != nil {
		t.Error(err)
	}
}

// initWorld is an account, and the environment of init in a folder of its own.
type initWorld struct {
	service *formservice.Server
	env     map[string]string
	told    bytes.Buffer
}

func newInitWorld(t *testing.T, forms ...*formservice.Form) *initWorld {
	t.Helper()
	service, server := newService(testKey, forms...)
	t.Cleanup(server.Close)
	t.Chdir(t.TempDir())
	return &initWorld{service: service, env: map[string]string{
		"FORMETL_BASE_URL": server.URL, "FORMETL_ACCOUNT": formservice.DefaultAccount, "FORMETL_TIMEZONE": "UTC", "FORMETL_API_KEY": testKey,
	}}
}

func (w *initWorld) lookup(name string) (string, bool) { v, ok := w.env[name]; return v, ok }

// begin runs init. Somebody types these lines, or nobody is there if they are nil.
func (w *initWorld) begin(ctx context.Context, typed []string, args ...string) error {
	w.told.Reset()
	s := &initSession{p: &process{stderr: &w.told, lookup: w.lookup, log: console.NewLog(&w.told, nil)}}
	cmd := s.command()
	if typed != nil {
		s.in = bufio.NewReader(strings.NewReader(strings.Join(append(typed, ""), "\n")))
	}
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

// load reads a definition as a run does.
func (w *initWorld) load(t *testing.T, file string) *definition.Definition {
	t.Helper()
	def, err := definition.Load(file, console.Checks(t.Context(), w.lookup))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

func leftNothing(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestInitAsksAgain: a wrong answer is told and asked again, what the service refuses too,
// and the answers before it stay. A key that is typed by mistake is shown and written nowhere.
func TestInitAsksAgain(t *testing.T) {
	w := newInitWorld(t, smallForm(), largeForm("orders", 150))
	url := w.env["FORMETL_BASE_URL"]
	delete(w.env, "FORMETL_BASE_URL")
	delete(w.env, "FORMETL_ACCOUNT")
	typed := []string{
		"", url + "/acm/form1/index", testKey, "${{file:key}}", "${env:NOT_SET}", "", "Mars", "America/Chicago", // and the account is not known
		"", "acme", "", "ordrs", "2, 7", "2,form1", "datset", "", "out/{form}.csv", "out/all/", "lake/{form}/", "ful", "",
	}
	if err := w.begin(t.Context(), typed); err != nil {
		t.Fatalf("%v\n%s", err, &w.told)
	}
	told := w.told.String()
	for _, says := range []string{
		"please type an answer", "never the key itself; did you mean ${file:key}?", "NOT_SET is not set", "not a time zone", "This is the address of form form1: the service is http", "HTTP status 404 (invalid user)", "[acm]: ", "did you mean orders?", "[orders]: ", "[form1]: ", "[dataset]: ", "API v2. The account has 2 forms", "the account has no form 7",
		`"datset": give one of file, dataset, table`, "a dataset is a folder; end a path with a slash", "put {form} into the path", `"ful": give one of incremental, full`, "formetl", " run acme.yaml",
	} {
		if !strings.Contains(told, says) {
			t.Errorf("%q is not said in\n%s", says, told)
		}
	}
	def := w.load(t, "acme.yaml")
	out := def.Outputs[0]
	if !slices.Equal(def.Forms, []string{"orders", "form1"}) || def.Source.Account != "acme" || def.Source.Zone.String() != "America/Chicago" || def.Schema != nil || def.Extract.Incremental ||
		len(def.Outputs) != 1 || !strings.HasSuffix(out.Path, "/lake/{form}/") || out.Format != "parquet" || out.Partition != definition.PartitionMonth {
		t.Errorf("%+v", def)
	}
	text, err := os.ReadFile("acme.yaml")
	if err != nil || strings.Contains(told+string(text), testKey) {
		t.Errorf("shows the key, %v:\n%s", err, text)
	}
	if n := w.service.Counts()["forms"]; n != 4 { // for each account, once to learn the generation
		t.Errorf("the forms were listed %d times", n)
	}
}

// TestInitEnds: the end of the input and a signal end the questions, and leave nothing. A name that is
// taken does not end them.
func TestInitEnds(t *testing.T) {
	w := newInitWorld(t, smallForm())
	typed := []string{"", "", "", "", "", "", ""}
	for lines := range typed {
		if err := w.begin(t.Context(), typed[:lines]); console.ExitCode(err) != console.ExitUsage || !strings.Contains(err.Error(), "--no-input") {
			t.Errorf("after %d lines: %v", lines, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&console.StopError{Signal: syscall.SIGTERM})
	if err := w.begin(ctx, nil, "--form", "form1"); console.ExitCode(err) != console.ExitTerminated {
		t.Errorf("stopped: %v", err)
	}
	leftNothing(t)
	if err := w.begin(t.Context(), typed); err != nil { // the only form, and a file
		t.Error(err)
	}
	if def := w.load(t, "form1.yaml"); def.Schema == nil || !strings.HasSuffix(def.Outputs[0].Path, "/out/{form}.csv") {
		t.Errorf("%+v", def)
	}
	if err := w.begin(t.Context(), slices.Insert(typed, 5, "", "form1", "other")); err != nil || strings.Count(w.told.String(), "file already exists") != 2 {
		t.Errorf("%v\n%s", err, &w.told)
	}
	w.load(t, "other.yaml")
}

// TestInitOfATable: a table needs no path, and its connection string is a reference.
func TestInitOfATable(t *testing.T) {
	w := newInitWorld(t, smallForm())
	w.env["PG"] = "postgres://loader:secret@db.example.com/warehouse"
	table := func() {
		t.Helper()
		def := w.load(t, "form1.yaml")
		if out := def.Outputs[0]; len(def.Outputs) != 1 || out.Path != "postgres://db.example.com/warehouse/forms.{form}/" || !def.Extract.Incremental || strings.Contains(w.told.String(), "secret") {
			t.Errorf("%+v", def)
		}
	}
	if err := w.begin(t.Context(), nil, "--form", "form1", "--table", "forms.{form}"); err != nil {
		t.Fatal(err)
	}
	table()
	typed := []string{"", "", "", "", "", "table", "postgres://x:secret@db/w", "${env:NOT_SET}", "", "{form}.x", "forms.{form}", ""}
	if err := w.begin(t.Context(), typed, "--force"); err != nil {
		t.Fatalf("%v\n%s", err, &w.told)
	}
	table()
	for _, says := range []string{"the connection string contains a password", "NOT_SET is not set; press Ctrl-C, set it (export NOT_SET=…)", "the schema's name has a placeholder", "[public.{form}]: "} {
		if !strings.Contains(w.told.String(), says) {
			t.Errorf("%q is not said in\n%s", says, &w.told)
		}
	}
}

// TestInitAsksWhatFlagsLeave: flags for everything leave no question.
func TestInitAsksWhatFlagsLeave(t *testing.T) {
	w := newInitWorld(t, smallForm(), largeForm("orders", 150))
	args := []string{"--base-url", w.env["FORMETL_BASE_URL"], "--account", "acme", "--api-key-reference", "${env:FORMETL_API_KEY}", "--timezone", "Europe/Berlin", "--form", "*", "--path", "a/{form}/"}
	if err := w.begin(t.Context(), []string{}, append(args, "--mode", "full")...); err != nil {
		t.Error(err)
	}
	if err := w.begin(t.Context(), []string{}, append(args, "--force")...); console.ExitCode(err) != console.ExitUsage || !strings.HasSuffix(w.told.String(), "[incremental]: \n") {
		t.Errorf("%v, told %s", err, &w.told)
	}
}

// TestInitRefusesFlags: the key of each wrong flag is named, before any request.
func TestInitRefusesFlags(t *testing.T) {
	w := newInitWorld(t, smallForm())
	for _, c := range []struct{ args, key, says string }{
		{"--base-url ftp://x", "--base-url", "not a valid address of http or https"},
		{"--base-url http://fs1.example.com", "--base-url", "start init with --allow-http"},
		{"--api v9", "--api", "give v1, v2 or auto"},
		{"--account a/b", "--account", "cannot be used in a path"},
		{"--api-key-reference " + testKey, "--api-key-reference", "not a reference"},
		{"--api-key-reference ${env:NOT_SET}", "--api-key-reference", "NOT_SET is not set"},
		{"--api-key-file none", "--api-key-file", "cannot be read"},
		{"--timezone America/Chicgo", "--timezone", "write an IANA name"},
		{"--form a/b", "--form", "cannot be a form's name"},
		{"--format parquet --path a.csv", "--format", "the path ends with .csv"},
		{"--format xlsx --path a/", "--format", "for single files only"},
		{"--path ~/a.csv", "--path ~/a.csv", "is not replaced here"},
		{"--path a", "--path a", "or start init with --format"},
		{"--path {from}.csv", "--path {from}.csv", "did you mean {form}?"},
		{"--path a.csv --path a.csv", "--path a.csv", "another --path would overwrite each other"},
		{"--path a.csv --form x --form y", "--path a.csv", "put {form} into the path"},
		{"--path a/ --partition weekly", "--partition", ""},
		{"--path a.csv --partition day", "--partition", "a dataset is a folder; end a path with a slash"},
		{"--path a/ --mode incrementl", "--mode", "did you mean incremental?"},
		{"--path a/ --path a.csv --mode incremental", "--path a.csv", "such as feedback/; or write --mode full"},
		{"--names labels", "--names", "did you mean label?"},
		{"-o a.json", "--output", "has to end with .yaml"},
		{"-o a:b.yaml", "--output", "contains a colon"},
	} {
		for _, typed := range [][]string{nil, {}} {
			args := strings.Fields(c.args)
			if !strings.Contains(c.args, "--form ") {
				args = append(args, "--form", "form1")
			}
			err := w.begin(t.Context(), typed, args...)
			if console.ExitCode(err) != console.ExitUsage || !strings.HasPrefix(err.Error(), c.key+": ") || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), testKey) {
				t.Errorf("%s: %v (%d)", c.args, err, console.ExitCode(err))
			}
		}
	}
	if n := len(w.service.Log()); n > 0 {
		t.Errorf("%d requests", n)
	}
	leftNothing(t)
}

// TestInitQuotesForms: a form whose name looks like YAML or like a reference is read as it is.
func TestInitQuotesForms(t *testing.T) {
	for _, form := range []string{"on", "123", "a b", "ä", "${x}", "x,y", "a'b"} {
		f := smallForm()
		f.Directory = form
		w := newInitWorld(t, f)
		if err := w.begin(t.Context(), nil, "--form", form); err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		name := form
		if form == "${x}" { // no name of a file
			name = "acme"
		}
		if def := w.load(t, name+".yaml"); !slices.Equal(def.Forms, []string{form}) || def.Name != name {
			t.Errorf("%s: read as %q of %q", form, def.Forms, def.Name)
		}
	}
}

// TestInitTopicNamesEachFlag compares the tables of `formetl help init` with the flags.
func TestInitTopicNamesEachFlag(t *testing.T) {
	page, err := pipelines.Docs.ReadFile("init.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (?:`-.`, )?`--([a-z0-9-]+)` \\|").FindAllSubmatch(page, -1)
	documented, flags := make([]string, len(rows)), []string{}
	for i, row := range rows {
		documented[i] = string(row[1])
	}
	initCommand(&process{}).Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	slices.Sort(documented)
	if !slices.Equal(documented, flags) {
		t.Errorf("documented %q\nflags %q", documented, flags)
	}
}
