package pipelines

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/formetl/formetl/load"
)

func TestStoppedRunTellsWhy(t *testing.T) {
	stop, other := errors.New("stopped by a test"), errors.New("disk full")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := stopped(ctx, other); err != other { //nolint:errorlint // as it is
		t.Errorf("before the stop: %v", err)
	}
	cancel(stop)
	recorded := &load.CommitError{RunID: "r", Recorded: true, Err: context.Canceled}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("window x: %w", stop), "stopped by a test"},
		{fmt.Errorf("window x: %w", context.Canceled), "stopped by a test"},
		{other, "stopped by a test; disk full"},
		{recorded, "stopped by a test; " + recorded.Error()},
	} {
		if err := stopped(ctx, c.err); !errors.Is(err, stop) || err.Error() != c.want {
			t.Errorf("%v: %q", c.err, err)
		}
	}
}
