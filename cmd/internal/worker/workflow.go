package worker

import (
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
)

// Source names the definition that a workflow runs. Workers read the file themselves.
type Source struct {
	// Path is that of the definition's file below the workers' --definitions, with slashes.
	Path string `json:"path"`
	// Variables are the values of ${var:NAME} by name.
	Variables map[string]string `json:"variables,omitempty"`
}

// PipelineInput is the input of a Pipeline workflow.
type PipelineInput struct {
	Source Source   `json:"source"`
	Forms  []string `json:"forms,omitempty"` // only these forms of the definition; empty means all

	// Forms that the workflow takes along when it goes on in a new history.
	Remaining []string  `json:"left,omitempty"` // forms whose runs have not begun
	Ended     []FormEnd `json:"ended,omitempty"`
}

// Listed are the forms that a definition reads.
type Listed struct {
	Pipeline string   `json:"pipeline"`
	Forms    []string `json:"forms"`
	// Clashes are forms that would be written over each other, with the error of each.
	Clashes []FormEnd `json:"clashes,omitempty"`
}

// PipelineEnd is the result of a Pipeline workflow.
type PipelineEnd struct {
	Forms []FormEnd `json:"forms"`
}

// FormInput is the input of the activity Run.
type FormInput struct {
	Source Source `json:"source"`
	Form   string `json:"form"`
}

// FormEnd says how the run of a form ended.
type FormEnd struct {
	Form     string        `json:"form"`
	RunID    string        `json:"run_id,omitempty"`
	Rows     int64         `json:"rows"`
	Requests load.Requests `json:"requests"` // requests of the last try
	Outputs  []OutputEnd   `json:"outputs,omitempty"`
	// Code is the exit code of the form's error, 0 if it has none. Error is its text.
	Code  int    `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

// OutputEnd says how many rows an output holds after the run.
type OutputEnd struct {
	Path string `json:"path"`
	Rows int64  `json:"rows"`
}

// Heartbeat is what an activity reports to Temporal while it works.
type Heartbeat struct {
	Rows     int64 `json:"rows"`
	Windows  int64 `json:"windows"`
	Requests int64 `json:"requests"`
}

// PipelineID returns the id of the workflow for the definition of this name.
func PipelineID(pipeline string) string { return "formetl/" + pipeline }

const (
	// formsAtOnce is how many forms of a definition wait for a worker or are read at the same
	// time. The workers decide how many are read, and the budget how many requests they send.
	formsAtOnce = 100
	// formsOfHistory is how many forms one history covers; the workflow then goes on in a new one.
	formsOfHistory = 500
)

// options sets the options of all activities. A failure that may pass is tried again for a day.
func options(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: 25 * time.Hour, // the budget of a day may be used up
		StartToCloseTimeout:    24 * time.Hour,
		HeartbeatTimeout:       30 * time.Second,
		WaitForCancellation:    true, // a cancelled activity gives back what it has staged
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute},
	})
}

// Pipeline is the workflow of a definition. It lists the forms, and has an activity run each form.
// A form that fails does not stop the others, unless all would fail for the same cause.
//
// Workflows that are under way when workers are upgraded go on in the new code by their
// histories. So a change of what Pipeline does, or in which order, goes behind
// workflow.GetVersion; a test replays the histories in testdata.
func Pipeline(ctx workflow.Context, in PipelineInput) (*PipelineEnd, error) {
	ctx = options(ctx)
	if in.Remaining == nil {
		var listed Listed
		if err := workflow.ExecuteActivity(ctx, (*Activities).List, in).Get(ctx, &listed); err != nil {
			return nil, err
		}
		in.Remaining, in.Ended = listed.Forms, listed.Clashes
		if id := PipelineID(listed.Pipeline); workflow.GetInfo(ctx).WorkflowExecution.ID != id {
			return alone(ctx, id, in) // a schedule gives each of its workflows an id of its own
		}
	}
	now := in.Remaining[:min(len(in.Remaining), formsOfHistory)]
	in.Ended, in.Remaining = append(in.Ended, runForms(ctx, in, now)...), in.Remaining[len(now):]
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(in.Remaining) > 0 {
		return nil, workflow.NewContinueAsNewError(ctx, Pipeline, in)
	}
	return &PipelineEnd{Forms: in.Ended}, nil
}

// alone runs the pipeline as a workflow with the id of its definition, so that one runs at a time.
func alone(ctx workflow.Context, id string, in PipelineInput) (end *PipelineEnd, err error) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: id, WaitForCancellation: true, ParentClosePolicy: enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
	})
	err = workflow.ExecuteChildWorkflow(ctx, Pipeline, in).Get(ctx, &end)
	return end, err
}

// runForms runs forms side by side, and returns how each form ended, in the order of forms.
func runForms(ctx workflow.Context, in PipelineInput, forms []string) []FormEnd {
	ends := make([]FormEnd, len(forms))
	slots, wait := workflow.NewSemaphore(ctx, formsAtOnce), workflow.NewWaitGroup(ctx)
	refused := "" // set: why no further form is begun
	for i, form := range forms {
		if slots.Acquire(ctx, 1) != nil {
			ends[i] = FormEnd{Form: form, Code: console.ExitInterrupted, Error: "not started: the workflow was cancelled"}
			continue
		}
		if refused != "" {
			slots.Release(1)
			ends[i] = FormEnd{Form: form, Code: console.ExitNoPermission, Error: "not started: " + refused}
			continue
		}
		wait.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer wait.Done()
			defer slots.Release(1)
			end := &ends[i]
			if err := workflow.ExecuteActivity(ctx, (*Activities).Run, FormInput{Source: in.Source, Form: form}).Get(ctx, end); err != nil {
				*end = FormEnd{Form: form}
				end.Code, end.Error = codeOf(err)
			}
			if end.Code == console.ExitNoPermission {
				refused = end.Error
			}
		})
	}
	wait.Wait(ctx)
	return ends
}
