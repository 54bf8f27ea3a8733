package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
)

func scheduleCommand(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Create, list and delete schedules of definitions",
		Long: `A schedule of Temporal starts the workflow of a definition by the definition's
` + "`schedule:`" + `, in the account's zone. Where the workflow before is still under way, it
starts none.`,
		Args: flags.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(scheduleCreateCommand(p), scheduleListCommand(p), scheduleDeleteCommand(p))
	return cmd
}

func scheduleCreateCommand(p *process) *cobra.Command {
	f := startFlags{connection: connection{lookup: p.lookup}}
	cmd := &cobra.Command{
		Use:     "create DEFINITION...",
		Short:   "Create the schedules of definitions, or change them",
		Example: `  formetl-worker schedule create feedback.yaml`,
		Args:    flags.Definitions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			all, err := p.definitions(ctx, &f.Definition, f.definitions, args)
			if err != nil {
				return err
			}
			for _, d := range all {
				if d.def.Schedule == "" {
					return &exit.Error{Code: exit.Config, Err: fmt.Errorf("%s says no schedule; add a line such as `schedule: 15 3 * * *`", d.def.File)}
				}
			}
			c, err := f.dial(ctx, p)
			if err != nil {
				return err
			}
			defer c.Close()
			var failures []error
			for _, d := range all {
				failures = append(failures, p.schedule(ctx, c, &f, d))
			}
			return errors.Join(failures...)
		},
	}
	f.registerAll(cmd.Flags())
	return cmd
}

// schedule creates the schedule of a definition. One that is there is changed.
func (p *process) schedule(ctx context.Context, c client.Client, f *startFlags, d named) error {
	id := PipelineID(d.def.Name)
	spec := client.ScheduleSpec{CronExpressions: []string{d.def.Schedule}, TimeZoneName: d.def.Source.Zone.String()}
	action := &client.ScheduleWorkflowAction{
		ID: id, Workflow: Pipeline, TaskQueue: f.queue, Args: []any{PipelineInput{Source: d.source, Forms: f.Forms, GroupRequests: f.groupRequests}},
	}
	_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{ID: id, Spec: spec, Action: action, Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP})
	what := "created"
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		what = "changed"
		err = c.ScheduleClient().GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{
			DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				is := in.Description.Schedule
				is.Spec, is.Action = &spec, action
				is.Policy.Overlap = enums.SCHEDULE_OVERLAP_POLICY_SKIP
				return &client.ScheduleUpdate{Schedule: &is}, nil
			},
		})
	}
	if err != nil {
		return temporalError("make the schedule "+id, err)
	}
	fmt.Fprintf(p.stderr, "%s the schedule %s: %s in %s\n", what, id, d.def.Schedule, d.def.Source.Zone)
	return nil
}

func scheduleListCommand(p *process) *cobra.Command {
	f := connection{lookup: p.lookup}
	cmd := &cobra.Command{
		Use: "list", Short: "List the schedules of formetl's pipelines", Example: `  formetl-worker schedule list`, Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd.Context(), p, func(c client.Client) error { return p.list(cmd.Context(), c) })
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// list shows the schedules as a table.
func (p *process) list(ctx context.Context, c client.Client) error {
	all, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return temporalError("list the schedules", err)
	}
	rows := [][]string{{"SCHEDULE", "NEXT", "LAST", "PAUSED"}}
	for all.HasNext() {
		s, err := all.Next()
		if err != nil {
			return temporalError("list the schedules", err)
		}
		if !strings.HasPrefix(s.ID, PipelineID("")) {
			continue
		}
		next, last := "", ""
		if len(s.NextActionTimes) > 0 {
			next = s.NextActionTimes[0].UTC().Format(time.RFC3339)
		}
		if n := len(s.RecentActions); n > 0 {
			last = s.RecentActions[n-1].ActualTime.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{s.ID, next, last, strconv.FormatBool(s.Paused)})
	}
	return show.Table(p.stdout, rows...)
}

func scheduleDeleteCommand(p *process) *cobra.Command {
	f := connection{lookup: p.lookup}
	cmd := &cobra.Command{
		Use: "delete PIPELINE...", Short: "Delete the schedules of pipelines", Example: `  formetl-worker schedule delete feedback`,
		Long: "Delete takes names of pipelines, as the definitions say them. Workflows that are under way go on.",
		Args: flags.Arguments(1, 1000, "one or more names of pipelines, such as feedback"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), p, func(c client.Client) error { return p.unschedule(cmd.Context(), c, args) })
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// unschedule deletes the schedules of pipelines.
func (p *process) unschedule(ctx context.Context, c client.Client, pipelines []string) error {
	var failures []error
	for _, name := range pipelines {
		id := PipelineID(strings.TrimPrefix(name, PipelineID("")))
		err := c.ScheduleClient().GetHandle(ctx, id).Delete(ctx)
		switch {
		case isType[*serviceerror.NotFound](err):
			failures = append(failures, &exit.Error{Code: exit.NoInput, Err: fmt.Errorf("there is no schedule %s; `formetl-worker schedule list` lists them", id)})
		case err != nil:
			failures = append(failures, temporalError("delete the schedule "+id, err))
		default:
			fmt.Fprintln(p.stderr, "deleted the schedule", id)
		}
	}
	return errors.Join(failures...)
}
