package cli

import (
	"context"

	"github.com/formetl/formetl/pipelines"
)

type planFlags struct{ json, offline bool }

func (a *app) showPlans(ctx context.Context, defs []*pipelines.Definition, o pipelines.Options, f planFlags) error {
	return nil
}
