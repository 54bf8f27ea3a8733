package wizard

import (
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
)

// typed gives a line for each read, as a terminal does.
type typed struct{ lines []string }

func (r *typed) Read(p []byte) (int, error) {
	if len(r.lines) == 0 {
		return 0, io.EOF
	}
	line := r.lines[0]
	r.lines = r.lines[1:]
	return copy(p, line+"\n"), nil
}

// dumb is the environment of a terminal that cannot draw.
func dumb(name string) (string, bool) { return map[string]string{"TERM": "dumb"}[name], name == "TERM" }

// TestPlainLines: a terminal that cannot draw asks line by line, with the same checks.
func TestPlainLines(t *testing.T) {
	w := newWorld(t)
	in := &typed{[]string{
		"", w.url, "acme", "", // an empty address is refused; the reference is as proposed
		"0", "2", "0", // nothing chosen is refused
		"Mars", "America/Chicago", // no such zone
		"2", "", // a dataset of the first format
		"data/{form}/", "2", "y", // and another output
		"", "", "data/{form}/", "more/{form}/", "", "", // the same path is refused
		"", "", "", "orders.txt", "mine.yaml",
		"n",
	}}
	var out bytes.Buffer
	made, err := w.begin(t, Terminal(in, &out, dumb))
	if err != nil || strings.Contains(out.String(), "\x1b") {
		t.Fatalf("%v\n%q", err, &out)
	}
	if wanted, err := made.WantsRun(t.Context()); wanted || err != nil || len(in.lines) > 0 {
		t.Errorf("%v, %v, not read %q", wanted, err, in.lines)
	}
	def := w.load(t, "mine.yaml")
	if def.Forms[0] != "orders" || len(def.Outputs) != 2 || def.Outputs[0].Partition != "day" || def.Outputs[1].Partition != "month" || def.Schema == nil || !def.Extract.Incremental || def.Source.Zone.String() != "America/Chicago" {
		t.Errorf("%+v", def)
	}
	for _, says := range []string{"an answer is needed", "nothing is chosen yet", "not a time zone", "ends with .yaml", "Path [lake/{form}/]", "two outputs have one path, this and data/{form}/; give", "Another output? [y/N]", "Run it now? [Y/n]"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("%q is not said in\n%s", says, &out)
		}
	}
}

// TestPlainLinesEnd: the end of the input is no endless question, and a signal ends one.
func TestPlainLinesEnd(t *testing.T) {
	w := newWorld(t)
	for lines := range 8 { // the last one is no choice
		in := &typed{[]string{w.url, "acme", "", "2", "0", "UTC", "x"}[:lines]}
		if _, err := w.begin(t, Terminal(in, io.Discard, dumb)); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "--no-input") {
			t.Errorf("after %d lines: %v", lines, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&exit.StopError{Signal: syscall.SIGTERM})
	never, end := io.Pipe()
	defer func() { _ = end.Close() }()
	s := &Session{o: w.options(nil), flags: &Flags{}}
	if err := Terminal(never, io.Discard, dumb)(ctx, newPage(s, []Question{question("base-url")})); exit.Code(err) != exit.Terminated {
		t.Errorf("stopped: %v", err)
	}
}
