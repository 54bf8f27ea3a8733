package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/extract"
)

func countCommand(p *process) *cobra.Command {
	var form string
	var span flags.Range
	var q extract.CountQuery
	cmd := askCommand(p, &cobra.Command{
		Use:   "count [DEFINITION] [--form FORM]",
		Short: "Count a form's results",
		Long:  "Count prints how many results the service holds, of a range of time or of ids, as a bare number.",
		Example: `  formetl count --base-url https://fs1.example.com --account acme --form form1
  formetl count feedback.yaml --from 2026-01-01 --to 2026-02-01
  formetl count --form form1 --min-id 100001`,
	}, &form, func(ctx context.Context, c extract.Client) (reply, error) {
		n, err := c.Count(ctx, form, q)
		return reply{struct {
			Form  string `json:"form"`
			Count int64  `json:"count"`
		}{form, n}, [][]string{{strconv.FormatInt(n, 10)}}}, err
	})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		o, err := span.Options()
		if err != nil {
			return err
		}
		q.Window = extract.Window{From: o.From, To: o.To}
		switch ids := q.IDs; {
		case ids.Min < 0 || ids.Max < 0:
			return errors.New("--min-id and --max-id are result ids: whole numbers from 1 on")
		case ids.Max > 0 && ids.Min > ids.Max:
			return fmt.Errorf("--max-id %d is below --min-id %d", ids.Max, ids.Min)
		}
		return nil
	}
	span.Register(cmd.Flags())
	cmd.Flags().Int64Var(&q.IDs.Min, "min-id", 0, "least result id")
	cmd.Flags().Int64Var(&q.IDs.Max, "max-id", 0, "greatest result id")
	return cmd
}
