package worker

import (
	"slices"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/formetl/formetl/cmd/internal/exit"
)

const (
	// formsAtOnce is how many forms of a definition are under way at once.
	formsAtOnce = 20
	// formsOfHistory is how many forms a history covers.
	formsOfHistory = 500
)

// Listed are the forms that a definition reads.
type Listed struct {
	Pipeline string   `json:"pipeline"`
	Forms    []string `json:"forms"`
	// Clashes are forms that would be written over each other, with the error of each.
	Clashes []FormEnd `json:"clashes,omitempty"`
}

// Pipeline is the workflow of a definition. A form that fails does not stop the others,
// unless each would fail of the same cause.
func Pipeline(ctx workflow.Context, in PipelineInput) (*PipelineEnd, error) {
	ctx = options(ctx)
	var listed Listed
	if err := workflow.ExecuteActivity(ctx, (*Activities).List, in).Get(ctx, &listed); err != nil {
		return nil, err
	}
	if in.Left == nil {
		in.Left, in.Ended = listed.Forms, listed.Clashes
	}
	now := in.Left
	if len(now) > formsOfHistory {
		now = now[:formsOfHistory]
	}
	ends := runForms(ctx, in, listed.Pipeline, now)
	in.Ended, in.Left = append(in.Ended, ends...), in.Left[len(now):]
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(in.Left) > 0 {
		return nil, workflow.NewContinueAsNewError(ctx, Pipeline, in)
	}
	return &PipelineEnd{Forms: in.Ended}, nil
}

// runForms runs forms side by side, and returns how each ended, in the order of forms.
func runForms(ctx workflow.Context, in PipelineInput, pipeline string, forms []string) []FormEnd {
	ends := make([]FormEnd, len(forms))
	slots, wait := workflow.NewSemaphore(ctx, formsAtOnce), workflow.NewWaitGroup(ctx)
	refused := "" // why no further form is begun
	for i, form := range forms {
		if slots.Acquire(ctx, 1) != nil {
			ends[i] = FormEnd{Form: form, Code: exit.Interrupted, Error: "not begun: the workflow was cancelled"}
			continue
		}
		if refused != "" {
			slots.Release(1)
			ends[i] = FormEnd{Form: form, Code: exit.NoPermission, Error: "not begun: " + refused}
			continue
		}
		wait.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer wait.Done()
			defer slots.Release(1)
			ends[i] = runForm(ctx, in, pipeline, form)
			if ends[i].Code == exit.NoPermission {
				refused = ends[i].Error
			}
		})
	}
	wait.Wait(ctx)
	return ends
}

// runForm runs the workflow of a form.
func runForm(ctx workflow.Context, in PipelineInput, pipeline, form string) FormEnd {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: FormID(pipeline, form), WaitForCancellation: true,
		ParentClosePolicy: enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
	})
	var end FormEnd
	err := workflow.ExecuteChildWorkflow(ctx, Form, FormInput{Source: in.Source, Form: form, GroupRequests: in.GroupRequests}).Get(ctx, &end)
	if err != nil {
		end = FormEnd{Form: form}
		end.Code, end.Error = codeOf(err)
	}
	return end
}

// failed are the forms that failed.
func (e *PipelineEnd) failed() []FormEnd {
	return slices.DeleteFunc(slices.Clone(e.Forms), func(f FormEnd) bool { return f.Code == exit.OK })
}

// isRunning tells whether a workflow was not started because one with its id is under way.
func isRunning(err error) bool { return temporal.IsWorkflowExecutionAlreadyStartedError(err) }
