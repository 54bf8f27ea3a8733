package worker

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// budgetQueue is the task queue of all Budgets. Every worker polls it, whatever queue it
// works for, so that an account's Budget answers while any worker lives.
const budgetQueue = "formetl-budget"

// shareUpdate is the name of the update by which workers ask a Budget for their shares.
const shareUpdate = "share"

// mostUpdates is how many questions a Budget answers in one history.
const mostUpdates = 1000

// idleAfter is how long a Budget waits for the next question.
const idleAfter = 2 * time.Minute

// Budget is the workflow that shares the requests to an account among workers. It ends
// when nothing is lent and no request counts any more.
func Budget(ctx workflow.Context, l ledger) error {
	answered := 0
	err := workflow.SetUpdateHandler(ctx, shareUpdate, func(ctx workflow.Context, a Ask) (Share, error) {
		answered++
		return l.share(workflow.Now(ctx), a), nil
	})
	if err != nil {
		return err
	}
	for {
		before := answered
		full := func() bool { return answered >= mostUpdates }
		if _, err := workflow.AwaitWithTimeout(ctx, idleAfter, full); err != nil {
			return err
		}
		switch {
		case full() || workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return workflow.NewContinueAsNewError(ctx, Budget, l)
		case answered == before && l.idle(workflow.Now(ctx)):
			return nil
		}
	}
}
