package worker

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/pipelines/account"
)

const (
	// sideBySide is how many groups of a form are read at once.
	sideBySide = 8
	// windowsOfHistory is how many windows a history covers. Then the workflow goes on in a
	// new one.
	windowsOfHistory = 2000
	// mostBegun is how often a workflow begins again because another run came between.
	mostBegun = 5
	// mostRounds is how many plans of Reconcile are read. Then it reads alone.
	mostRounds = 3
	// clockSlack is by how much the clocks of workers and of Temporal's server may differ.
	// A window that ends after its results were read is read again.
	clockSlack = 10 * time.Second
)

// options are those of all activities. A step that fails for a reason that may pass is
// tried for a day.
func options(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: 25 * time.Hour, // the budget of a day may be used up
		StartToCloseTimeout:    24 * time.Hour,
		HeartbeatTimeout:       30 * time.Second,
		WaitForCancellation:    true, // it gives back what it has staged
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute},
	})
}

// Form is the workflow of a form's run.
func Form(ctx workflow.Context, in FormInput) (*FormEnd, error) {
	cursor := in.Cursor
	if cursor == nil {
		cursor = &Cursor{}
	}
	end, err := runSteps(options(ctx), in, cursor)
	if err != nil && cursor.Plan != nil && !workflow.IsContinueAsNewError(err) {
		giveUp(ctx, in, cursor)
	}
	return end, err
}

// giveUp gives the leases back, also where the workflow is cancelled. Where that fails,
// they expire.
func giveUp(ctx workflow.Context, in FormInput, cursor *Cursor) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: 2 * time.Minute, StartToCloseTimeout: time.Minute, HeartbeatTimeout: 30 * time.Second,
	})
	_ = workflow.ExecuteActivity(ctx, (*Activities).End, cursor.step(in)).Get(ctx, nil) // the activity logs it
}

// runSteps runs the steps of a form from where the cursor is.
func runSteps(ctx workflow.Context, in FormInput, cursor *Cursor) (*FormEnd, error) {
	for {
		var gone bool
		var err error
		switch plan := cursor.Plan; {
		case plan == nil:
			err = begin(ctx, in, cursor)
		case plan.Done != nil:
			plan.Done.Requests, plan.Done.Groups = cursor.Spent, cursor.Groups
			return plan.Done, nil
		case plan.Shares > 0:
			gone, err = stageAndCommit(ctx, in, cursor)
		case cursor.Next == plan.Groups:
			err = reconcile(ctx, in, cursor)
		default:
			gone, err = readAll(ctx, in, cursor)
			if err == nil && !gone && cursor.Next < plan.Groups {
				in.Cursor = cursor
				return nil, workflow.NewContinueAsNewError(ctx, Form, in)
			}
		}
		if err != nil {
			return nil, err
		}
		if gone {
			cursor.Plan = nil
		}
	}
}

// step is what an activity of the form is given.
func (c *Cursor) step(in FormInput) Step {
	s := Step{Source: in.Source, Form: in.Form, Run: c.Run, Decided: c.Decided, GroupRequests: in.GroupRequests, Spent: c.Spent}
	if c.Plan != nil {
		s.Of = c.Plan.Of
	}
	return s
}

// begin gives the run an id, and plans it.
func begin(ctx workflow.Context, in FormInput, cursor *Cursor) error {
	if cursor.Begun++; cursor.Begun > mostBegun {
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("other runs wrote to the outputs %d times meanwhile; start the workflow again when they have ended", mostBegun),
			fmt.Sprint(typePrefix, exit.Temporary), nil)
	}
	*cursor = Cursor{Begun: cursor.Begun, Spent: cursor.Spent, Decided: workflow.Now(ctx).Add(-clockSlack).UTC()}
	id := workflow.SideEffect(ctx, func(workflow.Context) any { return account.NewRunID(time.Now()) })
	if err := id.Get(&cursor.Run); err != nil {
		return err
	}
	return planned(ctx, cursor, (*Activities).Plan, cursor.step(in))
}

// reconcile makes what was read agree. It may ask for more groups, a few times.
func reconcile(ctx workflow.Context, in FormInput, cursor *Cursor) error {
	cursor.Rounds++
	step := cursor.step(in)
	step.Alone = cursor.Left || cursor.Rounds > mostRounds
	return planned(ctx, cursor, (*Activities).Reconcile, step)
}

// planned runs an activity that says how the run goes on.
func planned(ctx workflow.Context, cursor *Cursor, run any, step Step) error {
	var plan PlanEnd
	if err := workflow.ExecuteActivity(ctx, run, step).Get(ctx, &plan); err != nil {
		return err
	}
	cursor.Plan, cursor.Next, cursor.Spent = &plan, 0, cursor.Spent.Plus(plan.Requests)
	return nil
}

// readAll reads the next groups of the plan, as many as fit into this history. gone tells
// that another run came between. A group that cannot be read in the usual way is left to
// Reconcile, with all that follow.
func readAll(ctx workflow.Context, in FormInput, cursor *Cursor) (gone bool, err error) {
	plan := cursor.Plan
	each := max(1, plan.Windows/max(1, plan.Groups)) // windows of a group
	end := min(plan.Groups, cursor.Next+max(sideBySide, windowsOfHistory/each))
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	slots, wait := workflow.NewSemaphore(ctx, sideBySide), workflow.NewWaitGroup(ctx)
	left := false
	for group := cursor.Next; group < end && !gone && !left && err == nil; group++ {
		if failed := slots.Acquire(ctx, 1); failed != nil {
			err = failed
			break
		}
		step := cursor.step(in)
		step.Group = group
		wait.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer wait.Done()
			defer slots.Release(1)
			var read ReadEnd
			failed := workflow.ExecuteActivity(ctx, (*Activities).Read, step).Get(ctx, &read)
			cursor.Spent = cursor.Spent.Plus(read.Requests)
			gone, left = gone || read.Gone, left || read.Left
			if failed == nil && !gone && !left {
				return
			}
			if code, _ := codeOf(failed); failed != nil && code == exit.Data {
				left, failed = true, nil // Reconcile meets the same, and knows what to do about it
			}
			if err == nil && !gone && !left {
				err = failed
			}
			cancel()
		})
	}
	wait.Wait(ctx)
	switch {
	case gone:
		return true, nil
	case left:
		cursor.Next, cursor.Left = plan.Groups, true
		return false, nil
	case err != nil:
		return false, err
	}
	cursor.Next, cursor.Groups = end, cursor.Groups+end-cursor.Next
	return false, nil
}

// stageAndCommit stages the shares of the plan side by side, and commits them.
func stageAndCommit(ctx workflow.Context, in FormInput, cursor *Cursor) (gone bool, err error) {
	shares := make([]workflow.Future, 0, cursor.Plan.Shares)
	for share := range cursor.Plan.Shares {
		step := cursor.step(in)
		step.Group = share
		shares = append(shares, workflow.ExecuteActivity(ctx, (*Activities).Stage, step))
	}
	for _, share := range shares {
		var end StageEnd
		failed := share.Get(ctx, &end)
		gone = gone || end.Gone
		if err == nil {
			err = failed
		}
	}
	if gone || err != nil {
		return gone, err
	}
	var end CommitEnd
	if err := workflow.ExecuteActivity(ctx, (*Activities).Commit, cursor.step(in)).Get(ctx, &end); err != nil || end.Gone {
		return end.Gone, err
	}
	cursor.Plan = &PlanEnd{Done: end.Done}
	return false, nil
}
