package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/pipelines/account"
)

// startFlags are the flags of start.
type startFlags struct {
	connection
	flags.Definition
	definitions string
	wait        bool
}

func startCommand(p *process) *cobra.Command {
	f := startFlags{connection: connection{lookup: p.lookup}}
	cmd := &cobra.Command{
		Use:   "start DEFINITION...",
		Short: "Start a workflow for each definition",
		Long: `Start checks the definitions and starts a workflow for each. Its id is
formetl/PIPELINE, so that one is under way at a time. With --wait it ends when they have ended, with their exit code.`,
		Example: `  formetl-worker start feedback.yaml
  formetl-worker start --definitions /etc/formetl /etc/formetl/feedback.yaml --form form1 --wait`,
		Args: flags.Definitions,
		RunE: func(cmd *cobra.Command, args []string) error { return start(cmd.Context(), p, &f, args) },
	}
	set := cmd.Flags()
	f.register(set)
	set.StringVar(&f.definitions, "definitions", ".", "folder that the workers have their definitions in")
	set.StringArrayVar(&f.Forms, "form", nil, "only this form of the definition; repeatable")
	f.RegisterVariables(set)
	set.BoolVar(&f.wait, "wait", false, "wait for the end, and end with its exit code")
	return cmd
}

func start(ctx context.Context, p *process, f *startFlags, files []string) error {
	all, err := p.definitions(ctx, &f.Definition, f.definitions, files)
	if err != nil {
		return err
	}
	c, err := f.dial(ctx, p)
	if err != nil {
		return err
	}
	defer c.Close()
	var failures []error
	runs := make([]client.WorkflowRun, len(all))
	for i, d := range all {
		id := PipelineID(d.def.Name)
		runs[i], err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: id, TaskQueue: f.queue, WorkflowExecutionErrorWhenAlreadyStarted: true,
			WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		}, Pipeline, PipelineInput{Source: d.source, Forms: f.Forms})
		switch {
		case isRunning(err):
			failures = append(failures, &exit.Error{Code: exit.Temporary, Err: fmt.Errorf("the workflow %s is under way; start it again when it has ended", id)})
		case err != nil:
			failures = append(failures, temporalError("start the workflow "+id, err))
		default:
			fmt.Fprintf(p.stderr, "started %s (%s)\n", id, runs[i].GetRunID())
		}
	}
	for i, run := range runs {
		if f.wait && run != nil {
			failures = append(failures, p.await(ctx, all[i].def.Name, run))
		}
	}
	return errors.Join(failures...)
}

// await waits for the end of a workflow, and tells of it.
func (p *process) await(ctx context.Context, pipeline string, run client.WorkflowRun) error {
	var end PipelineEnd
	if err := run.Get(ctx, &end); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		code, text := codeOf(err)
		return &exit.Error{Code: code, Err: fmt.Errorf("%s: %s", pipeline, text)}
	}
	for _, form := range end.Forms {
		for _, o := range form.Outputs {
			fmt.Fprintf(p.stdout, "%s\t%s\t%d\t%s\n", pipeline, form.Form, o.Rows, o.Path)
		}
	}
	failed := &account.FormsError{Forms: len(end.Forms)}
	for _, form := range end.failed() {
		failed.Errors = append(failed.Errors, &exit.Error{Code: form.Code, Err: fmt.Errorf("form %s: %s", form.Form, form.Error)})
	}
	return failed.OrNil()
}
