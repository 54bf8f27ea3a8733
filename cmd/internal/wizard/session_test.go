package wizard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/parquetout"
	"github.com/formetl/formetl/load/xlsxout"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

const testKey = "wizard-canary-key"

// world is a service with the forms orders and feedback, a folder that is the working
// directory, and an environment.
type world struct {
	url     string
	service *formservice.Server
	told    strings.Builder
	env     map[string]string
	now     time.Time
}

func newWorld(t *testing.T, forms ...*formservice.Form) *world {
	t.Helper()
	if len(forms) == 0 {
		for i, name := range []string{"orders", "feedback"} {
			forms = append(forms, formservice.Generate(formservice.GenerateOptions{Directory: name, Results: 150 + i, Seed: 3, Items: 4}))
		}
	}
	w := &world{service: &formservice.Server{Key: testKey, Forms: forms}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	server := httptest.NewServer(w.service)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.env = map[string]string{"FORMETL_API_KEY": testKey, "FORMETL_TIMEZONE": "UTC"}
	t.Chdir(t.TempDir())
	return w
}

// options are for a session in this world; ask is nil where nobody is there.
func (w *world) options(ask func(context.Context, *Page) error) Options {
	o := Options{Ask: ask, Tell: func(text string) { w.told.WriteString(text + "\n") }, HideKey: func(transport.Secret) {}}
	o.Load.Lookup = func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }
	o.Load.Formats = []load.Format{csvout.Format(), parquetout.Format(), xlsxout.Format()}
	o.Load.Schemes = []string{"s3"}
	o.Account.Now = func() time.Time { return w.now }
	return o
}

// begin runs init with flags, and returns its session.
func (w *world) begin(t *testing.T, ask func(context.Context, *Page) error, args ...string) (*Session, error) {
	t.Helper()
	var made *Session
	cmd := Command(func(ctx context.Context, f *Flags) (err error) {
		made, err = Begin(ctx, f, w.options(ask))
		return err
	})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return made, err
}

// person answers questions by their flags. What has no answer is left as it is proposed.
func person(asked *[]string, answers map[string]string) func(context.Context, *Page) error {
	return func(_ context.Context, p *Page) error {
		for _, f := range p.Fields {
			*asked = append(*asked, f.Flag)
			if answer, ok := answers[f.Flag]; ok {
				f.Text, f.List, f.Yes = answer, []string{answer}, answer == yes
			}
			if err := f.Check(); err != nil {
				return err
			}
		}
		return nil
	}
}

// flagsOf are the flags of the command init.
func flagsOf(t *testing.T) (names []string) {
	t.Helper()
	Command(nil).Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// TestEachQuestionHasAFlag compares what persons are asked with the flags of the command.
func TestEachQuestionHasAFlag(t *testing.T) {
	w := newWorld(t)
	var asked []string
	for _, answers := range []map[string]string{
		{"base-url": w.url, "account": "acme", "form": "orders"},
		{"base-url": w.url, "account": "acme", "form": "*", "kind": dataset, "path": "s3://bucket/{form}/"},
	} {
		made, err := w.begin(t, person(&asked, answers))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := made.WantsRun(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	flags := slices.DeleteFunc(flagsOf(t), func(name string) bool { // these answer no question
		return slices.Contains([]string{"api", "api-key-file", "allow-http", "force", "no-input"}, name)
	})
	slices.Sort(flags)
	if !slices.Equal(asked, flags) {
		t.Errorf("asked %q\nflags %q", asked, flags)
	}
}

// TestFlagsAreNotAsked: a person whose flags answer everything is asked nothing.
func TestFlagsAreNotAsked(t *testing.T) {
	w := newWorld(t)
	var asked []string
	made, err := w.begin(t, person(&asked, nil), "--base-url", w.url, "--account", "acme", "--api-key-reference", "${env:FORMETL_API_KEY}",
		"--form", "orders", "--timezone", "Europe/Berlin", "--kind", "dataset", "--format", "csv", "--path", "data/{form}/", "--partition", "year",
		"--mode", "full", "--names", "id", "--schema", "none", "-o", "mine.yml", "--run")
	if err != nil || len(asked) > 0 {
		t.Fatalf("asked %q, %v", asked, err)
	}
	if wanted, err := made.WantsRun(t.Context()); !wanted || err != nil || len(asked) > 0 {
		t.Errorf("run %v, %v, asked %q", wanted, err, asked)
	}
	def := w.load(t, "mine.yml")
	out := def.Outputs[0]
	if def.Name != "mine" || def.Source.Zone.String() != "Europe/Berlin" || def.Labels || def.Extract.Incremental || def.Schema != nil ||
		out.Format != "csv" || out.Partition != definition.PartitionYear || !strings.HasSuffix(out.Path, "/data/{form}/") {
		t.Errorf("%+v", def)
	}
	counts := w.service.Counts()
	if counts["forms"] != 1 || counts["results"] != 1 || counts["results/count"] != 0 {
		t.Errorf("requests %v", counts)
	}
}

// load reads a definition as a run does, with its key, and holds that editors accept it.
func (w *world) load(t *testing.T, file string) *definition.Definition {
	t.Helper()
	def, err := definition.Load(file, w.options(nil).Load)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(data), "\n"); first != "# yaml-language-server: $schema=./"+editorSchema {
		t.Errorf("first line %q", first)
	}
	var decoded any
	if err := yaml.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(filepath.Dir(file), editorSchema))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	return def
}

// TestAPersonsAnswers: what is asked depends on the answers, and ends in the definition.
func TestAPersonsAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		answers   map[string]string
		notAsked  []string
		file      string
		forms     string
		path      string
		schema    bool
		partition definition.Partition
		s3        definition.S3
	}{
		{
			name: "a file of one form", answers: map[string]string{"form": "orders"}, notAsked: []string{"partition", "mode", "s3-region"},
			file: "orders.yaml", forms: "orders", path: "out/{form}.csv", schema: true, partition: definition.PartitionNone,
		},
		{
			name: "a dataset of all forms", answers: map[string]string{"form": "*", "kind": dataset}, notAsked: []string{"schema", "s3-region"},
			file: "acme.yaml", forms: "*", path: "lake/{form}/", partition: definition.PartitionMonth,
		},
		{
			name:    "a bucket",
			answers: map[string]string{"form": "feedback", "kind": dataset, "path": "s3://bucket/x/{form}/", "partition": "day", "s3-endpoint": "http://127.0.0.1:9000", "s3-region": "eu-west-1"},
			file:    "feedback.yaml", forms: "feedback", path: "s3://bucket/x/{form}/", schema: true, partition: definition.PartitionDay,
			s3: definition.S3{Endpoint: "http://127.0.0.1:9000", Region: "eu-west-1", PathStyle: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.answers["base-url"], c.answers["account"] = w.url, "acme"
			var asked []string
			made, err := w.begin(t, person(&asked, c.answers))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.notAsked {
				if slices.Contains(asked, name) {
					t.Errorf("%s was asked", name)
				}
			}
			if made.File() != c.file {
				t.Errorf("file %s", made.File())
			}
			def := w.load(t, c.file)
			out := def.Outputs[0]
			if strings.Join(def.Forms, " ") != c.forms || !strings.HasSuffix(out.Path, c.path) || out.Partition != c.partition ||
				(def.Schema != nil) != c.schema || def.Extract.Incremental != (c.answers["kind"] == dataset) || !def.Labels {
				t.Errorf("%+v", def)
			}
			if c.s3.Endpoint != "" && (out.S3 == nil || out.S3.Endpoint != c.s3.Endpoint || out.S3.Region != c.s3.Region || out.S3.PathStyle != c.s3.PathStyle) {
				t.Errorf("%+v", out.S3)
			}
			if n := w.service.Counts()["results/count"]; n < 2 {
				t.Errorf("%d forms were counted", n)
			}
		})
	}
}

// TestOutputsByFlags: repeated flags give several outputs, where nobody is there to ask.
func TestOutputsByFlags(t *testing.T) {
	for _, c := range []struct {
		args, outputs string
		incremental   bool
	}{
		{"--path out/{form}.csv --path lake/{form}/", "out/{form}.csv csv none, lake/{form}/ parquet month", false},
		{"--path a.csv --path b/ --path c/ --partition day", "a.csv csv none, b/ parquet day, c/ parquet day", false},
		{"--path a.csv --path b/ --path c/ --format csv --format csv --format parquet", "a.csv csv none, b/ csv month, c/ parquet month", false},
		{"--path b/ --path c/ --partition day --partition none", "b/ parquet day, c/ parquet none", true},
		{"--path a.parquet --path b/ --format csv", "a.parquet parquet none, b/ csv month", false},
		{"--format csv --format parquet", "out/{form}.csv csv none, out/{form}.parquet parquet none", false},
		{"--format csv --format csv", "out/{form}.csv csv none, out2/{form}.csv csv none", false},
		{"--kind file --kind dataset", "out/{form}.csv csv none, lake/{form}/ parquet month", false},
		{"--kind dataset --format csv --format parquet", "lake/{form}/ csv month, lake2/{form}/ parquet month", true},
		{"--partition year --format csv --format parquet", "lake/{form}/ csv year, lake2/{form}/ parquet year", true},
		{"--another-output", "out/{form}.csv csv none, lake/{form}/ parquet month", false},
		{"--path b/ --another-output", "b/ parquet month, lake/{form}/ parquet month", true},
		{
			"--path s3://b/x/ --path a/ --path s3://b/y/ --s3-region r --s3-endpoint http://127.0.0.1:9000",
			"s3://b/x/ parquet month r, a/ parquet month, s3://b/y/ parquet month r", true,
		},
	} {
		t.Run(c.args, func(t *testing.T) {
			w := newWorld(t)
			args := append(strings.Fields(c.args), "--base-url", w.url, "--account", "acme", "--form", "orders", "--schema", "none")
			if _, err := w.begin(t, nil, args...); err != nil {
				t.Fatal(err)
			}
			def := w.load(t, "orders.yaml")
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			outputs := make([]string, len(def.Outputs))
			for i, out := range def.Outputs {
				outputs[i] = strings.TrimPrefix(out.Path, filepath.ToSlash(here)+"/") + " " + out.Format + " " + string(out.Partition)
				if out.S3 != nil {
					outputs[i] += " " + out.S3.Region
				}
			}
			if got := strings.Join(outputs, ", "); got != c.outputs || def.Extract.Incremental != c.incremental {
				t.Errorf("%s, incremental %v", got, def.Extract.Incremental)
			}
		})
	}
}

// TestAnotherOutput: a person is asked for outputs until there is no other one.
func TestAnotherOutput(t *testing.T) {
	w := newWorld(t)
	outputs := []map[string]string{
		{"form": "orders", "path": "a.csv", "another-output": yes},
		{"kind": dataset, "path": "b/", "another-output": yes},
		{"kind": file, "format": "xlsx", "path": "c.xlsx", "another-output": no},
	}
	var asked []string
	_, err := w.begin(t, func(ctx context.Context, p *Page) error {
		answers := outputs[0]
		if p.Fields[0].Flag == "another-output" && len(outputs) > 1 {
			outputs = outputs[1:]
		}
		return person(&asked, answers)(ctx, p)
	}, "--base-url", w.url, "--account", "acme", "--schema", "none")
	if err != nil {
		t.Fatal(err)
	}
	def := w.load(t, "orders.yaml")
	if len(def.Outputs) != 3 || def.Outputs[1].Partition != definition.PartitionMonth || def.Outputs[2].Format != "xlsx" || slices.Contains(asked, "mode") {
		t.Errorf("%+v, asked %q", def.Outputs, asked)
	}
}

// TestMostFormsAreNotCounted bounds what the sizes of forms cost.
func TestMostFormsAreNotCounted(t *testing.T) {
	forms := make([]*formservice.Form, 3*mostCounts)
	for i := range forms {
		forms[i] = formservice.NewForm("form"+string(rune('A'+i)), nil, nil)
	}
	w := newWorld(t, forms...)
	var asked, labels []string
	ask := person(&asked, map[string]string{"form": "formA"})
	_, err := w.begin(t, func(ctx context.Context, p *Page) error {
		for _, c := range p.Fields[0].Choices {
			labels = append(labels, c.Label)
		}
		return ask(ctx, p)
	}, "--base-url", w.url, "--account", "acme", "--schema", "none")
	if err != nil {
		t.Fatal(err)
	}
	sized := slices.DeleteFunc(labels, func(label string) bool { return !strings.HasSuffix(label, " results") })
	if n := w.service.Counts()["results/count"]; n != mostCounts || len(sized) != mostCounts {
		t.Errorf("%d forms were counted, %d shown with their size", n, len(sized))
	}
}

// TestARefusedAnswerIsAskedAgain: a person mends what the service refuses.
func TestARefusedAnswerIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	accounts, proposed := []string{"nobody", "acme"}, []string{}
	var asked []string
	_, err := w.begin(t, func(ctx context.Context, p *Page) error {
		answers := map[string]string{"form": "orders"}
		for _, f := range p.Fields {
			if f.Flag == "account" {
				proposed = append(proposed, f.Text)
				answers["account"], accounts = accounts[0], accounts[1:]
			}
		}
		return person(&asked, answers)(ctx, p)
	}, "--base-url", w.url, "--schema", "none")
	if err != nil || !slices.Equal(proposed, []string{"", "nobody"}) || !strings.Contains(w.told.String(), "error 101") {
		t.Errorf("%v, proposed %q, told %s", err, proposed, w.told.String())
	}
}

// TestStoppedLeavesNothing: at whichever question somebody ends it, no file is there.
func TestStoppedLeavesNothing(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		page := 0
		var asked []string
		_, err := w.begin(t, func(ctx context.Context, p *Page) error {
			if page++; page == at {
				return &exit.StopError{Signal: syscall.SIGINT}
			}
			return person(&asked, map[string]string{"base-url": w.url, "account": "acme", "form": "orders"})(ctx, p)
		})
		if err == nil {
			if at <= 6 {
				t.Errorf("only %d pages were asked", at-1)
			}
			return
		}
		left, readErr := os.ReadDir(".")
		if exit.Code(err) != exit.Interrupted || readErr != nil || len(left) > 0 {
			t.Errorf("page %d: %v, %v, left %v", at, err, readErr, left)
		}
	}
}

// TestWrongAnswers: each is wrong usage that names its flag, before any request.
func TestWrongAnswers(t *testing.T) {
	for _, c := range []struct{ args, flag, says string }{
		{"--base-url ftp://x", "base-url", "begins with neither"},
		{"--base-url http://fs1.example.com", "base-url", "give --allow-http"},
		{"--api v9", "api", "give v1, v2 or auto"},
		{"--account a/b", "account", "is not an account"},
		{"--api-key-reference " + testKey, "api-key-reference", "not a reference"},
		{"--api-key-reference ${env:NOT_SET}", "api-key-reference", "NOT_SET is not set; set it by `export NOT_SET=...`"},
		{"--api-key-reference ${file:none}", "api-key-reference", "cannot be read"},
		{"--api-key-file none", "api-key-reference", "cannot be read"},
		{"--timezone America/Chicgo", "timezone", "did you mean America/Chicago?"},
		{"--timezone Local", "timezone", "not a time zone"},
		{"--form a/b", "form", "cannot be a form"},
		{"--form * --form orders", "form", "choose it alone"},
		{"--kind datset", "kind", "did you mean dataset?"},
		{"--kind file --path lake/{form}/", "kind", "a file's path does not"},
		{"--format parqet", "format", "did you mean parquet?"},
		{"--format xlsx --kind dataset", "format", "for single files only"},
		{"--format parquet --path a.csv", "format", "the path ends with .csv"},
		{"--path ~/a.csv", "path", "not replaced by a home folder"},
		{"--path a", "path", "names no format"},
		{"--path gs://bucket/a.csv", "path", "no destination for gs://"},
		{"--path {from}.csv", "path", "did you mean {form}?"},
		{"--partition weekly", "partition", ""},
		{"--partition day --path a.csv", "partition", "cannot be partitioned"},
		{"--mode incrementl", "mode", "did you mean incremental?"},
		{"--mode incremental --path a.csv", "path", "mode: incremental adds to what is there"},
		{"--path a.csv --s3-endpoint http://127.0.0.1:9000", "s3-endpoint", "a.csv is not in S3; leave"},
		{"--s3-endpoint here --path s3://bucket/a.csv", "s3-endpoint", ""},
		{"--names labels", "names", "did you mean label?"},
		{"--schema infr --form orders", "schema", "did you mean infer?"},
		{"--schema infer --form orders --form feedback", "schema", "this definition is for several"},
		{"--path a.csv --path a.csv", "path", "two outputs have one path, this and a.csv; give each output a path of its own"},
		{"--path lake/ --format csv --format parquet", "path", "two outputs have one path, this and lake/; give"},
		{"--path lake/ --path lake/a.csv", "path", "lake/ lies in the other's dataset folder"},
		{"--path {form}.csv --path a.parquet --form orders --form feedback", "path", "put {form} into the path"},
		{"--path {form}.csv --path a.parquet --form *", "path", "put {form} into the path"},
		{"--path a.csv --path lake/ --mode incremental", "path", "mode: incremental adds to what is there"},
		{"--path lake/ --path a.csv --mode incremental", "path", "mode: incremental adds to what is there"},
		{"--path a.csv --path lake/ --format xlsx", "format", "for single files only"},
		{"--path a.csv --path b.parquet --format csv", "format", "the path ends with .parquet"},
		{"--path a.csv --path b.parquet --partition day", "partition", "cannot be partitioned"},
		{"--path a.csv --path b.parquet --s3-region x", "s3-region", "a.csv is not in S3; leave"},
		{"--path a.csv --path b.parquet --kind dataset", "kind", "a.csv has no slash"},
		{"--path a.csv --path b/ --path c/ --format csv --format parquet", "format", "given 2 times for 3 outputs; give it once"},
		{"-o a.json", "output", "ends with .yaml"},
		{"-o -", "output", "ends with .yaml"},
		{"-o none/a.yaml", "output", "none is not there"},
		{"-o a:b.yaml", "output", "holds a colon"},
	} {
		t.Run(strings.NewReplacer("{", "", "}", "").Replace(c.args), func(t *testing.T) {
			w := newWorld(t)
			args := strings.Fields(c.args)
			if !strings.Contains(c.args, "--base-url") {
				args = append(args, "--base-url", w.url)
			}
			_, err := w.begin(t, nil, args...)
			if exit.Code(err) != exit.Usage || !strings.HasPrefix(err.Error(), "--"+c.flag+": ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v (%d)", err, exit.Code(err))
			}
			if err != nil && strings.Contains(err.Error(), testKey) {
				t.Error("the error shows the key")
			}
			if n := len(w.service.Log()); n > 0 {
				t.Errorf("%d requests", n)
			}
			left, _ := os.ReadDir(".")
			if len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// TestMissingAnswers: where nobody is there, the flags are named that have no proposal.
func TestMissingAnswers(t *testing.T) {
	w := newWorld(t)
	_, err := w.begin(t, nil)
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "--base-url") || !strings.Contains(err.Error(), "--account") {
		t.Errorf("nothing given: %v", err)
	}
	w.env["FORMETL_BASE_URL"], w.env["FORMETL_ACCOUNT"] = w.url, "acme"
	_, err = w.begin(t, nil)
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "give --form; the account has 2 forms, such as orders, feedback") {
		t.Errorf("no form given: %v", err)
	}
	delete(w.env, "FORMETL_API_KEY")
	if _, err = w.begin(t, nil); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "--api-key-reference: the environment variable FORMETL_API_KEY is not set") {
		t.Errorf("no key: %v", err)
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestUnknownForms are refused with the nearest name, like those of other commands.
func TestUnknownForms(t *testing.T) {
	w := newWorld(t)
	for form, says := range map[string]string{"ordrs": "did you mean orders?", "zzzzzzz": "no such form", "x*": "no form of the account matches"} {
		_, err := w.begin(t, nil, "--base-url", w.url, "--account", "acme", "--form", form)
		if exit.Code(err) != exit.NoInput || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", form, err)
		}
	}
	empty := newWorld(t)
	empty.service.Forms = []*formservice.Form{}
	if _, err := empty.begin(t, nil, "--base-url", empty.url, "--account", "acme"); exit.Code(err) != exit.NoInput {
		t.Errorf("an account without forms: %v", err)
	}
}

// TestOnlyFormIsProposed: an account with one form needs no flag for it.
func TestOnlyFormIsProposed(t *testing.T) {
	w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Directory: "alone", Results: 10}))
	made, err := w.begin(t, nil, "--base-url", w.url, "--account", "acme")
	if err != nil || made.File() != "alone.yaml" {
		t.Fatal(made, err)
	}
	if wanted, err := made.WantsRun(t.Context()); wanted || err != nil {
		t.Errorf("run without being told: %v", err)
	}
}

// TestFilesThatAreThere are kept, unless --force says otherwise.
func TestFilesThatAreThere(t *testing.T) {
	w := newWorld(t)
	args := []string{"--base-url", w.url, "--account", "acme", "--form", "orders"}
	for _, name := range []string{"orders.yaml", "orders.schema.yaml"} {
		if err := os.WriteFile(name, []byte("mine\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := w.begin(t, nil, args...)
		if exit.Code(err) != exit.CantCreate || !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(editorSchema, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	edited := "version: 1\ncolumns:\n  - {name: mine, from: result_id, type: string}\n"
	if err := os.WriteFile("orders.schema.yaml", []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.begin(t, nil, append(args, "--force")...); err != nil {
		t.Fatal(err)
	}
	schema, err := definition.LoadSchema("orders.schema.yaml", nil)
	if err != nil || schema.Columns[0].Name != "mine" || len(schema.Columns) < 3 {
		t.Errorf("%+v, %v", schema, err)
	}
	if data, err := os.ReadFile(editorSchema); err != nil || string(data) != "{}" {
		t.Errorf("%s was replaced: %v", editorSchema, err)
	}
}

// TestTheKey stands in no file and in nothing that is told, wherever it comes from.
func TestTheKey(t *testing.T) {
	for _, c := range []struct{ flag, value, reference string }{
		{"--api-key-file", "secrets/key", "${file:../secrets/key}"},
		{"--api-key-reference", "${file:../secrets/key}", "${file:../secrets/key}"},
		{"--api-key-reference", "${cmd:read key < ../secrets/key; echo $key}", "${cmd:read key < ../secrets/key; echo $key}"},
		{"--api-key-reference", "${env:OTHER_KEY}", "${env:OTHER_KEY}"},
	} {
		t.Run(c.value, func(t *testing.T) {
			w := newWorld(t)
			delete(w.env, "FORMETL_API_KEY")
			w.env["OTHER_KEY"] = testKey
			for _, dir := range []string{"secrets", "made"} {
				if err := os.Mkdir(dir, 0o750); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile("secrets/key", []byte(testKey+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			o := w.options(nil)
			o.Load.Command = func(dir, line string) (string, error) { return definition.RunCommand(t.Context(), dir, line) }
			cmd := Command(func(ctx context.Context, f *Flags) error { _, err := Begin(ctx, f, o); return err })
			cmd.SetArgs([]string{"--base-url", w.url, "--account", "acme", "--form", "orders", c.flag, c.value, "-o", "made/orders.yaml"})
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile("made/orders.yaml")
			if err != nil || !strings.Contains(string(text), "api_key: "+scalar(c.reference)+" ") {
				t.Errorf("%s, %v", text, err)
			}
			files, err := filepath.Glob("made/*")
			if err != nil || len(files) != 3 {
				t.Fatal(files, err)
			}
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil || strings.Contains(string(data)+w.told.String(), testKey) {
					t.Errorf("%s shows the key, %v", file, err)
				}
			}
		})
	}
}

// TestAKeyFileOfAnotherFolder: a reference to a file leads there from the definition too.
func TestAKeyFileOfAnotherFolder(t *testing.T) {
	w := newWorld(t)
	if err := errors.Join(os.Mkdir("made", 0o750), os.WriteFile("key", []byte(testKey), 0o600)); err != nil {
		t.Fatal(err)
	}
	var asked []string
	answers := map[string]string{"api-key-reference": "${file:key}", "form": "orders", "output": "made/mine.yaml"}
	if _, err := w.begin(t, person(&asked, answers), "--base-url", w.url, "--account", "acme"); err != nil {
		t.Fatal(err)
	}
	if def := w.load(t, "made/mine.yaml"); def.Source.Key.Redact(testKey) == testKey {
		t.Error("the definition has another key")
	}
}

// TestTheTopicNamesEachQuestion compares the table of `formetl help init` with the flags.
func TestTheTopicNamesEachQuestion(t *testing.T) {
	page, err := pipelines.Docs.ReadFile("init.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (?:`-.`, )?`--([a-z0-9-]+)` \\|").FindAllSubmatch(page, -1)
	documented, flags := make([]string, len(rows)), make([]string, len(Questions()))
	for i, row := range rows {
		documented[i] = string(row[1])
	}
	for i, q := range Questions() {
		flags[i] = q.Flag
	}
	if !slices.Equal(documented, flags) {
		t.Errorf("documented %q\nflags %q", documented, flags)
	}
}
