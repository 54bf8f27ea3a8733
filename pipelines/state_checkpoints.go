package pipelines

import (
	"context"
	"errors"

	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// discardCheckpoints removes the checkpoints that runs which ended early left of
// forms, and gives those that it removed. One that a run has taken up meanwhile
// stays.
func discardCheckpoints(ctx context.Context, def *definition.Definition, forms []string) (discarded []checkpoint.Left, err error) {
	for _, l := range checkpointsOf(ctx, def, forms) {
		gone, failed := l.Discard(ctx)
		if failed != nil {
			err = errors.Join(err, failed)
		}
		if gone && failed == nil {
			discarded = append(discarded, l)
		}
	}
	return discarded, err
}
