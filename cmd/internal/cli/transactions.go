package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/schemas/plain"
)

func formsCommand(p *process) *cobra.Command {
	return askCommand(p, &cobra.Command{
		Use:   "forms [DEFINITION]",
		Short: "List the account's forms",
		Example: `  formetl forms --base-url https://fs1.example.com --account acme
  formetl forms feedback.yaml
  formetl forms --json | jq -r '.[].directory'`,
	}, nil, func(ctx context.Context, c extract.Client) (reply, error) {
		forms, err := c.Forms(ctx)
		return reply{append([]extract.Form{}, forms...), formRows(forms...)}, err
	})
}

func formRows(forms ...extract.Form) [][]string {
	return console.Rows([][]string{{"FORM", "NAME", "ID", "DESCRIPTION"}}, forms, func(f extract.Form) []string {
		return []string{f.Directory, f.Name, f.ID, f.Description}
	})
}

func statusCommand(p *process) *cobra.Command {
	var form string
	return askCommand(p, &cobra.Command{
		Use:   "status [DEFINITION] [--form FORM]",
		Short: "Show whether a form is open, and how much of its quotas is used",
		Example: `  formetl status --base-url https://fs1.example.com --account acme --form form1
  formetl status feedback.yaml`,
	}, &form, func(ctx context.Context, c extract.Client) (reply, error) {
		status, err := c.Status(ctx, form)
		rows := [][]string{{"form", form}, {"state", status.State}, {"last modified", status.LastModified}}
		rows = console.Rows(rows, status.Limits, func(l extract.Limit) []string {
			if l.Total == 0 { // API v2 names no quotas
				return []string{l.Type, console.Thousands(l.Used)}
			}
			return []string{l.Type, console.Thousands(l.Used) + " of " + console.Thousands(l.Total)}
		})
		status.Limits = append([]extract.Limit{}, status.Limits...) // none is [] and not null
		return reply{struct {
			Form string `json:"form"`
			extract.Status
		}{form, status}, rows}, err
	})
}

func publishCommand(p *process) *cobra.Command {
	var form string
	var secure bool
	cmd := askCommand(p, &cobra.Command{
		Use:   "publish [DEFINITION] [--form FORM]",
		Short: "Show a form's publishing links and embed codes",
		Example: `  formetl publish --base-url https://fs1.example.com --account acme --form form1
  formetl publish feedback.yaml --secure --json`,
	}, &form, func(ctx context.Context, c extract.Client) (reply, error) {
		publish, err := c.Publish(ctx, form, secure)
		rows := console.Rows([][]string{{"KIND", "LINK OR CODE"}}, publish.URLs, func(u extract.PublishURL) []string { return []string{u.Type, u.URL} })
		rows = console.Rows(rows, publish.Codes, func(code string) []string { return []string{"embed", code} })
		// None is [] and not null.
		publish.URLs, publish.Codes = append([]extract.PublishURL{}, publish.URLs...), append([]string{}, publish.Codes...)
		return reply{struct {
			Form string `json:"form"`
			extract.Publish
		}{form, publish}, rows}, err
	})
	cmd.Flags().BoolVar(&secure, "secure", false, "ask for https links")
	return cmd
}

func countCommand(p *process) *cobra.Command {
	var form string
	var span console.RangeFlags
	var q extract.CountQuery
	cmd := askCommand(p, &cobra.Command{
		Use:   "count [DEFINITION] [--form FORM]",
		Short: "Count a form's results",
		Long: `Count prints how many results the service holds, of a range of time or of ids, as
a bare number. A definition gives the server, the account, the key, the zone and
the form, but not its range: --from and --to give one.`,
		Example: `  formetl count --base-url https://fs1.example.com --account acme --form form1
  formetl count feedback.yaml --from 2026-01-01 --to 2026-02-01
  formetl count --form form1 --min-id 100001`,
	}, &form, func(ctx context.Context, c extract.Client) (reply, error) {
		n, err := extract.Counting(c).Count(ctx, form, q)
		return reply{struct {
			Form  string `json:"form"`
			Count int64  `json:"count"`
		}{form, n}, [][]string{{strconv.FormatInt(n, 10)}}}, err
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		o, err := span.Options()
		const otherwise = "leave it out for no bound"
		if err = cmp.Or(err, console.AboveZero(cmd.Flags(), "min-id", otherwise), console.AboveZero(cmd.Flags(), "max-id", otherwise)); err != nil {
			return err
		}
		q.Window = extract.Window{From: o.From, To: o.To}
		if ids := q.IDs; ids.Max > 0 && ids.Min > ids.Max {
			return fmt.Errorf("--max-id %d is below --min-id %d", ids.Max, ids.Min)
		}
		return nil
	}
	span.Register(cmd.Flags())
	cmd.Flags().Int64Var(&q.IDs.Min, "min-id", 0, "least result id")
	cmd.Flags().Int64Var(&q.IDs.Max, "max-id", 0, "greatest result id")
	return cmd
}

func copyCommand(p *process) *cobra.Command {
	var form string
	var to extract.CopyTarget
	var yes bool
	cmd := askCommand(p, &cobra.Command{
		Use:   "copy --form FORM",
		Short: "Copy a form, without its results, to a new one",
		Long: `Copy makes a new form like another one, in this account or another. It
changes something at the service, so it asks first, or takes --yes. It is never sent twice: if the reply is lost, look with formetl forms.`,
		Example: `  formetl copy --base-url https://fs1.example.com --account acme --form form1 --to-form "Form 2"
  formetl copy --form form1 --to-account other --yes`,
	}, &form, func(ctx context.Context, c extract.Client) (reply, error) {
		made, err := c.Copy(ctx, form, to)
		return reply{made, formRows(made)}, err
	})
	send := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := console.CheckForm(form); err != nil {
			return err
		}
		if !yes {
			agreed, err := p.confirm(cmd.Context(), copyQuestion(form, to), "nothing was sent")
			if err != nil || !agreed {
				return err
			}
		}
		return send(cmd, args)
	}
	set := cmd.Flags()
	set.StringVar(&to.Account, "to-account", "", "username of the account that gets the copy (default: this one)")
	set.StringVar(&to.Form, "to-form", "", "name of the new form (default: the original's)")
	set.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func copyQuestion(form string, to extract.CopyTarget) string {
	question := "Copy form " + plain.Line(form)
	if to.Form != "" {
		question += fmt.Sprintf(" as %q", plain.Line(to.Form))
	}
	if to.Account != "" {
		question += " to account " + plain.Line(to.Account)
	}
	return question + "? [y/N] "
}
