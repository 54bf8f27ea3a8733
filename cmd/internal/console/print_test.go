package console

import (
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
)

// TestColumns holds that no name of the service breaks a table's line.
func TestColumns(t *testing.T) {
	if got := Columns("  ", [][]string{{"A", "B"}, {"long\nname", ""}}); got != "  A          B\n  long name\n" {
		t.Errorf("table %q", got)
	}
}

func TestPrintFails(t *testing.T) {
	for _, err := range []error{Print(failing{}, []byte("x")), Show(failing{}, true, 1, ""), Table(failing{}, []string{"a"})} {
		if ExitCode(err) != ExitIO {
			t.Errorf("%v: %d", err, ExitCode(err))
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES \n": true, "n\n": false, "\n": false, "yes": false, "": false, "yesterday\n": false} {
		var told bytes.Buffer
		got, err := Ask(t.Context(), strings.NewReader(answer), &told, "Copy? ", "nothing was sent")
		if got != want || err != nil {
			t.Errorf("%q: %v, %v", answer, got, err)
		}
		if !strings.HasPrefix(told.String(), "Copy? ") || strings.Contains(told.String(), "Nothing was sent") == want {
			t.Errorf("%q: told %q", answer, told.String())
		}
	}
	// A signal ends the question.
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&StopError{Signal: syscall.SIGINT})
	never, end := io.Pipe()
	defer func() { _ = end.Close() }()
	if _, err := Ask(ctx, never, io.Discard, "Copy? ", "nothing was sent"); ExitCode(err) != ExitInterrupted {
		t.Errorf("interrupted: %v", err)
	}
}

// TestMarkdown: a page is wrapped to the terminal, and its table too.
func TestMarkdown(t *testing.T) {
	const page = "# Runs\n\nA run reads **all** of its forms, once.\n\n- one item of a few words\n\n| Key | What |\n|---|---|\n| `a\\|b` | it is not long, is it |\n\n```\n# code | as it is\n```\n"
	const want = "<Runs>\n\nA run reads all of its\nforms, once.\n\n- one item of a few\n  words\n\nKey    What\n`a|b`  it is not long,\n       is it\n\n    # code | as it is\n\n"
	if got := Markdown(page, 22, "<", ">"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
