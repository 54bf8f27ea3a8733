package output

import (
	"context"
	"errors"
	"testing"

	"github.com/formetl/formetl/load"
)

// lostLease is a lease that is lost when its channel is closed.
type lostLease chan struct{}

func (l lostLease) Lost() <-chan struct{}         { return l }
func (l lostLease) Release(context.Context) error { return nil }

// A request of a commit that is under way when the lease is lost ends then: answered late, it
// would undo what the run that holds the lease does.
func TestLostLeaseEndsRequests(t *testing.T) {
	lease := make(lostLease)
	p := &place{Location: Location{Path: "s3://bucket/lake/"}, lease: lease}
	ctx, end := guard(t.Context(), p)
	defer end()
	if ctx.Err() != nil {
		t.Fatal("it has ended already")
	}
	close(lease)
	<-ctx.Done()
	if _, held := errors.AsType[*load.HeldError](context.Cause(ctx)); !held {
		t.Errorf("it ended because of %v", context.Cause(ctx))
	}
}
