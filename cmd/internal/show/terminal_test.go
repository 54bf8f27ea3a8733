package show

import (
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
)

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
	cancel(&exit.StopError{Signal: syscall.SIGINT})
	never, end := io.Pipe()
	defer func() { _ = end.Close() }()
	if _, err := Ask(ctx, never, io.Discard, "Copy? ", "nothing was sent"); exit.Code(err) != exit.Interrupted {
		t.Errorf("interrupted: %v", err)
	}
}
