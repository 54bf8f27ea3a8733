package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/s3server"
)

// screen is a terminal with a shell in it, which tmux shows to the test.
type screen struct {
	t      *testing.T
	socket string
	dir    string
}

// newScreen starts a terminal of 90 columns and 45 lines in a folder of its own.
func newScreen(t *testing.T) *screen {
	t.Helper()
	tmux := needs.Program(t, "tmux", "apt-get install tmux")
	s := &screen{t: t, socket: filepath.Join(t.TempDir(), "tmux"), dir: t.TempDir()}
	start := exec.CommandContext(t.Context(), tmux, "-S", s.socket, "-f", "/dev/null", "new-session", "-d", "-x", "90", "-y", "45", "-c", s.dir, "/bin/sh")
	start.Env = append(environment(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TZ=UTC", "GORACE="+raceOptions,
		"XDG_CACHE_HOME="+filepath.Join(s.dir, ".cache"), "FORMETL_API_KEY="+testKey)
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() }) //nolint:noctx // after the test's context
	s.tmux("send-keys", "PS1='rea''dy> '", "Enter")
	s.sees("ready>")
	return s
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// sees waits until the screen shows a text.
func (s *screen) sees(text string) {
	s.t.Helper()
	shown := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if shown = s.tmux("capture-pane", "-p", "-J"); strings.Contains(shown, text) {
			return
		}
	}
	s.t.Fatalf("the screen does not show %q:\n%s", text, shown)
}

// types waits for a text and then presses keys, by the names that tmux gives them.
func (s *screen) types(after string, keys ...string) {
	s.t.Helper()
	s.sees(after)
	s.tmux(append([]string{"send-keys"}, keys...)...)
}

// TestInitOnATerminal answers all questions by keys. The run at the end, and another one,
// accept what was written.
func TestInitOnATerminal(t *testing.T) {
	service, server := newService(testKey, smallForm(), largeForm("orders", 450))
	defer server.Close()
	s := newScreen(t)
	s.types("ready>", "formetl init && echo in''ited", "Enter")
	s.types("┃ Service", server.URL, "Enter")
	s.types("┃ Account", "acm", "Enter") // the service does not know it
	s.types("┃ API key", "Enter")
	s.sees("error 101")
	s.types("┃ Service", "Enter")
	s.types("┃ Account", "C-u", formservice.DefaultAccount, "Enter")
	s.types("┃ API key", "Enter")
	s.sees("450 results")
	s.types("┃ Forms", "Enter")
	s.types("nothing is chosen yet", "Down", "Down", "Space", "Enter")
	s.types("THAT IS", "C-u", "America/Chicgo", "Enter")
	s.types("did you mean", "BSpace", "BSpace", "ago")
	s.types("┃ There it is now", "Enter")
	s.types("┃ What to write", "Down", "Enter")
	s.types("┃ Format", "Enter")
	s.types("┃ Path", "C-u", "data/{form}", "Enter")
	s.types("no slash at its end", "/", "Enter")
	s.types("┃ Folders of the dataset", "BTab") // back, and on again
	s.types("┃ Path", "Enter")
	s.types("┃ Folders of the dataset", "Down", "Down", "Enter")
	s.types("┃ Another output?", "y")
	s.types("┃ What to write", "Enter") // a dataset again
	s.types("┃ Format", "Down", "Enter")
	s.types("┃ Path", "C-u", "data/{form}/", "Enter")
	s.types("two outputs have one path", "C-u", "more/{form}/", "Enter")
	s.types("┃ Folders of the dataset", "Enter")
	s.types("┃ Another output?", "Enter")
	s.types("┃ What each run reads", "Enter")
	s.types("┃ Names of the columns", "Down", "Enter")
	s.types("┃ Types of the columns", "Enter")
	s.types("┃ File of the definition", "Enter")
	s.sees("pipeline orders")
	s.types("┃ Run it now?", "y")
	s.sees("orders: verified")
	s.types("inited", "formetl run orders.yaml --progress off && formetl validate --strict orders.yaml && echo went''well", "Enter")
	s.sees("wentwell")

	text, err := os.ReadFile(filepath.Join(s.dir, "orders.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"# yaml-language-server: $schema=./definition.schema.json\n", "  base_url: " + server.URL + "\n", "  account: acme\n", "  api_key: ${env:FORMETL_API_KEY} ",
		"  timezone: America/Chicago ", "forms: [orders]\n", "names: id ", "schema: orders.schema.yaml ", "  mode: incremental ", "  - path: data/{form}/ ", "    format: parquet\n", "    partition: year ",
		"  - path: more/{form}/ ", "    format: csv\n", "    partition: month ",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	for _, folder := range []string{"data", "more"} {
		if _, err := os.Stat(filepath.Join(s.dir, folder, "orders", "_SUCCESS")); err != nil {
			t.Error(err)
		}
	}
	if n := service.Counts()["forms"]; n != 2 {
		t.Errorf("the forms were asked for %d times, want once for each account", n)
	}
}

// TestInitIsStopped: Ctrl-C and a signal end the questions in order, and leave nothing.
func TestInitIsStopped(t *testing.T) {
	_, server := newService(testKey, smallForm())
	defer server.Close()
	for name, stop := range map[string]func(*screen){
		"by a key":          func(s *screen) { s.types("┃ Time zone", "C-c"); s.sees("code: 130") },
		"by a signal":       func(s *screen) { s.sees("┃ Time zone"); s.terminate(); s.sees("code: 143") },
		"by a key, plainly": func(s *screen) { s.types("Time zone of the account [UTC]", "C-c"); s.sees("code: 130") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScreen(t)
			write(t, s.dir, ".key", testKey+"\n")
			if strings.HasSuffix(name, "plainly") {
				s.tmux("send-keys", "TERM=dumb; export TERM", "Enter")
			}
			s.tmux("send-keys", "sh -c 'echo $$ >pid; exec formetl init --base-url "+server.URL+" --account acme --api-key-file .key --form form1'; echo code: $?", "Enter")
			stop(s)
			files, err := filepath.Glob(filepath.Join(s.dir, "*"))
			if err != nil || len(files) != 2 { // the key, and the number of the process
				t.Errorf("left %v, %v", files, err)
			}
		})
	}
}

// terminate sends SIGTERM to the program.
func (s *screen) terminate() {
	s.t.Helper()
	pid, err := os.ReadFile(filepath.Join(s.dir, "pid"))
	if err != nil {
		s.t.Fatal(err)
	}
	if out, err := exec.CommandContext(s.t.Context(), "kill", "-TERM", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// TestInitToS3 ends in a definition that writes to a bucket.
func TestInitToS3(t *testing.T) {
	s := startStore(t)
	_, server := newService(testKey, smallForm())
	defer server.Close()
	dir := t.TempDir()
	code, stderr := s.formetl(t, dir, s3server.SecretKey, "init", "--base-url", server.URL, "--account", formservice.DefaultAccount, "--form", "form1",
		"--timezone", "UTC", "--path", fmt.Sprintf("s3://%s/lake/{form}/", bucket), "--s3-endpoint", s.URL, "--s3-region", "us-east-1", "--run")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if objects := s.objects(t); objects["lake/form1/_SUCCESS"] == nil {
		t.Errorf("%d objects, and no _SUCCESS", len(objects))
	}
	if code, stderr := s.formetl(t, dir, s3server.SecretKey, "run", "form1.yaml"); code != 0 {
		t.Errorf("the second run: exit %d: %s", code, stderr)
	}
}
