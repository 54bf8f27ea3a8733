package pipelines

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/formetl/formetl/extract"
)

// newPlan divides a span of the form, and fails where reading it would take
// more requests than are allowed. A plan that takes far more than its results
// call for is told before anything is read.
func (f *formRun) newPlan(ctx context.Context, span extract.Window, count extract.Counter) (*extract.Plan, error) {
	plan, err := extract.NewPlan(ctx, f.planRange(span), count)
	if err != nil {
		return nil, err
	}
	if err := f.tooCostly(plan); err != nil {
		return nil, err
	}
	if costly := costlyText(plan); costly != "" {
		f.log.LogAttrs(ctx, slog.LevelWarn, costly)
	}
	return plan, nil
}

// tooCostly is an *extract.CostError where a plan needs more requests than are
// allowed, those included that it has cost.
func (f *formRun) tooCostly(plan *extract.Plan) error {
	most := int64(f.def.Source.Requests.MaxRequests)
	needed := int64(plan.Requests) + plan.Cost()
	if most == 0 || needed <= most {
		return nil
	}
	return &extract.CostError{Requests: needed, Most: most, Windows: len(plan.Windows), Results: plan.Total, Step: plan.Range.Step}
}

// costlyText says that a plan takes far more requests than its results call
// for; "" where it does not.
func costlyText(plan *extract.Plan) string {
	cost, fair := plan.Cost(), plan.Fair()
	if cost <= fair {
		return ""
	}
	remedy := "set window: auto, or read a shorter range"
	if plan.Range.Step.Auto() {
		remedy = "read a shorter range, or choose a larger partition"
	}
	if plan.Total == extract.Unknown {
		return fmt.Sprintf("the plan takes at least %d requests, one for each window of %s, and nothing was counted; %s", cost, plan.Range.Step, remedy)
	}
	return fmt.Sprintf("the plan takes about %d requests for %d results, where %d would do (%d windows, window: %s); %s",
		cost, plan.Total, fair, len(plan.Windows), plan.Range.Step, remedy)
}
