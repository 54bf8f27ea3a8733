package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
)

func statusCommand(p *process) *cobra.Command {
	var form string
	return askCommand(p, &cobra.Command{
		Use:     "status --form FORM",
		Short:   "Show whether a form is open, and how much of its quotas is used",
		Example: `  formetl status --base-url https://fs1.example.com --account acme --form form1`,
	}, &form, func(ctx context.Context, c extract.Client) (reply, error) {
		status, err := c.Status(ctx, form)
		rows := [][]string{{"form", form}, {"state", status.State}, {"last modified", status.LastModified}}
		rows = show.Rows(rows, status.Limits, func(l extract.Limit) []string {
			return []string{l.Type, show.Thousands(l.Used) + " of " + show.Thousands(l.Total)}
		})
		status.Limits = append([]extract.Limit{}, status.Limits...) // none is [] and not null
		return reply{struct {
			Form string `json:"form"`
			extract.Status
		}{form, status}, rows}, err
	})
}
