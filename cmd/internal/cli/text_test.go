package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

func TestThousandsAndSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1500000: "1.5 MB", 2500000000: "2.5 GB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
	if one, two := plural(1, "form"), plural(2000, "form"); one != "1 form" || two != "2,000 forms" {
		t.Errorf("plural: %q, %q", one, two)
	}
}

// TestCell holds that no name of the service can steer a terminal or break a
// table's line.
func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "two\nlines\tand a tab": "two lines and a tab", "\x1b[31mred\x1b[0m": "[31mred [0m",
		"a\u202eb": "a b", "bad\xffbyte": "bad\uFFFDbyte", "\r\n": "", "é 山": "é 山",
	} {
		if got := cell(text); got != want {
			t.Errorf("cell(%q) = %q, want %q", text, got, want)
		}
	}
	var b bytes.Buffer
	writeTable(&b, "  ", [][]string{{"A", "B"}, {"long\nname", ""}})
	if b.String() != "  A          B\n  long name\n" {
		t.Errorf("table %q", b.String())
	}
}

func TestFormatIn(t *testing.T) {
	for args, want := range map[string]string{
		"": "text", "run x": "text", "--log-format json run": "json", "run --log-format=json": "json",
		"run --log-format": "text", "run -- --log-format json": "text", "run --log-format json --log-format text": "text",
	} {
		if got := formatIn(strings.Fields(args)); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for _, c := range []struct{ file, flag, format, codec, problem string }{
		{"a.csv", "", "csv", "", ""},
		{"a.csv.gz", "", "csv", "gzip", ""},
		{"a.ndjson.zst", "", "ndjson", "zstd", ""},
		{"a.json", "json", "json", "", ""},
		{"a.txt", "csv", "csv", "", ""},
		{"a.txt.gz", "csv", "csv", "gzip", ""},
		{"a.gz", "ndjson", "ndjson", "gzip", ""},
		{"a.parquet", "", "parquet", "", ""},
		{"a.arrow", "", "arrow", "", ""},
		{"a.xlsx", "", "xlsx", "", ""},
		{"a.xlsx.gz", "", "", "", "compressed inside"},
		{"a", "", "", "", "names no format"},
		{"a.gz", "", "", "", "names no format"},
		{"a.csv", "json", "", "", "is a name for csv"},
		{"a.parquet.gz", "", "", "", "compressed inside"},
		{"a.gz", "arrow", "", "", "compressed inside"},
	} {
		format, codec, err := formatOf(c.file, c.flag)
		wrong := c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem))
		if format != c.format || codec != c.codec || wrong {
			t.Errorf("%s, --format %s: %q %q %v", c.file, c.flag, format, codec, err)
		}
	}
}

func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES \n": true, "n\n": false, "\n": false, "yes": false, "": false, "yesterday\n": false} {
		var told bytes.Buffer
		a := &app{stdin: strings.NewReader(answer), stderr: &told}
		got, err := a.ask(t.Context(), "Copy? ", "nothing was sent")
		if got != want || err != nil {
			t.Errorf("%q: %v, %v", answer, got, err)
		}
		if !strings.HasPrefix(told.String(), "Copy? ") || strings.Contains(told.String(), "Nothing was sent") == want {
			t.Errorf("%q: told %q", answer, told.String())
		}
	}
	// A signal ends the question.
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&stopError{syscall.SIGINT})
	never, end := io.Pipe()
	defer func() { _ = end.Close() }()
	a := &app{stdin: never, stderr: io.Discard}
	if _, err := a.ask(ctx, "Copy? ", "nothing was sent"); exitCode(err) != exitInterrupt {
		t.Errorf("interrupted: %v", err)
	}
}

// TestTellJSON holds that every line is an object, whatever it is about.
func TestTellJSON(t *testing.T) {
	var out bytes.Buffer
	a := &app{stderr: &out, logFormat: formatJSON, logLevel: "error"}
	l, err := a.begin(levelInfo)
	if err != nil {
		t.Fatal(err)
	}
	l.tell(levelInfo, "two\nlines", slog.Int("n", 1))
	l.Info("below the level")
	a.printError(errors.Join(&definition.Error{File: "a.yaml", Problems: []definition.Problem{{Line: 1, Column: 2, Message: "bad"}}}, errors.New("x\ny")), "formetl run")
	a.printPanic("it\nbroke", []byte("goroutine 1\n"))
	a.summary(&pipelines.Report{Forms: []*pipelines.FormReport{{
		Form: "f", Timezone: "UTC", Rejected: 2, Replaced: 1, Undated: 3, Drift: []string{"a column more"}, Verified: &load.Verified{Match: true, Counted: 4},
		Outputs: []pipelines.OutputReport{{Path: "-", Rows: 7, Bytes: 10}},
	}, {Form: "g", Error: "failed"}}}, true)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 6 {
		t.Errorf("%d lines:\n%s", len(lines), &out)
	}
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &map[string]any{}); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, want := range []string{"7 results to standard output", "2 rejected", "1 forbidden character replaced", "with a date, and 3 without one", "this machine's zone", "note: a column more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// TestExplain holds that all definitions' problems are shown, each with its line.
func TestExplain(t *testing.T) {
	wrong := func(file string) error {
		return &definition.Error{File: file, Problems: []definition.Problem{{Line: 3, Column: 1, Key: "k", Message: "is bad", Excerpt: "k: 1"}}}
	}
	both := errors.Join(wrong("a.yaml"), wrong("b.yaml"))
	want := "a.yaml:3:1: k: is bad\n     3 | k: 1\nb.yaml:3:1: k: is bad\n     3 | k: 1"
	if got := explain(both); got != want || !allDefinitions(both) {
		t.Errorf("%s", got)
	}
	if allDefinitions(errors.Join(wrong("a"), errors.New("x"))) || allDefinitions(errors.New("x")) {
		t.Error("other errors are not about definitions")
	}
}

func TestPrintFails(t *testing.T) {
	a := &app{stdout: failing{}}
	for _, err := range []error{a.print([]byte("x")), a.printJSON(1), a.printTable([]string{"a"})} {
		if exitCode(err) != exitIO {
			t.Errorf("%v: %d", err, exitCode(err))
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
