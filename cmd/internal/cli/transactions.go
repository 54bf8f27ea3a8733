package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/webhooks"
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
	return show.Rows([][]string{{"FORM", "NAME", "ID", "DESCRIPTION"}}, forms, func(f extract.Form) []string {
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
		rows = show.Rows(rows, status.Limits, func(l extract.Limit) []string {
			if l.Total == 0 { // API v2 names no quotas
				return []string{l.Type, show.Thousands(l.Used)}
			}
			return []string{l.Type, show.Thousands(l.Used) + " of " + show.Thousands(l.Total)}
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
		rows := show.Rows([][]string{{"KIND", "LINK OR CODE"}}, publish.URLs, func(u extract.PublishURL) []string { return []string{u.Type, u.URL} })
		rows = show.Rows(rows, publish.Codes, func(code string) []string { return []string{"embed", code} })
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
	var span flags.Range
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
		if err = cmp.Or(err, flags.AboveZero(cmd.Flags(), "min-id", otherwise), flags.AboveZero(cmd.Flags(), "max-id", otherwise)); err != nil {
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
		if err := flags.CheckForm(form); err != nil {
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

func webhooksCommand(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "List, add or remove a form's webhooks",
		Long: `A webhook is an address to which the service sends each completed result of a
form. formetl tells the service where to, and receives nothing itself. Webhooks
need API v2: give --api v2, or source.api: v2 in the definition.`,
		Example: `  formetl webhooks list feedback.yaml --form form1
  formetl webhooks add feedback.yaml --form form1 --url https://example.com/results?form=form1
  formetl webhooks remove feedback.yaml --form form1 --url https://example.com/results?form=form1`,
		Args: flags.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var form string
	list := askCommand(p, &cobra.Command{
		Use:   "list [DEFINITION] [--form FORM]",
		Short: "List a form's webhooks",
		Long:  "List shows the webhooks whole, also what is secret in their URLs, but no handshake key.",
		Example: `  formetl webhooks list feedback.yaml
  formetl webhooks list --api v2 --form form1 --json | jq -r '.[].url'`,
	}, &form, func(ctx context.Context, c extract.Client) (reply, error) {
		hooks, err := webhooks.List(ctx, c, form)
		return reply{hooks, webhooks.Rows(hooks...)}, err
	})
	cmd.AddCommand(list, webhookCommand(p, new(webhooks.Change), &cobra.Command{
		Use:   "add [DEFINITION] [--form FORM] --url URL",
		Short: "Have the service send each completed result to an address",
		Long: `Add makes a webhook, or replaces the one of the same URL. It asks first, or takes
--yes. A result does not say which form it is of, so name the form in the URL.`,
		Example: `  formetl webhooks add feedback.yaml --url https://example.com/results?form=form1
  formetl webhooks add feedback.yaml --url https://example.com/results --handshake-key-file handshake.key --yes`,
	}), webhookCommand(p, &webhooks.Change{Remove: true}, &cobra.Command{
		Use:   "remove [DEFINITION] [--form FORM] --url URL",
		Short: "Have the service send nothing more to an address",
		Long: `Remove removes the webhook of a URL, which has to be spelled as the list shows it.
It asks first, or takes --yes.`,
		Example: `  formetl webhooks remove feedback.yaml --url https://example.com/results?form=form1 --yes`,
	}))
	return cmd
}

// webhookCommand completes a command that adds or removes a webhook.
func webhookCommand(p *process, c *webhooks.Change, cmd *cobra.Command) *cobra.Command {
	var yes bool
	askCommand(p, cmd, &c.Form, func(ctx context.Context, client extract.Client) (reply, error) {
		w, err := c.Make(ctx, client)
		if err != nil || w == nil {
			return reply{}, err
		}
		return reply{w, webhooks.Rows(*w)}, nil
	})
	const otherwise = "nothing was changed"
	c.Note = func(format string, args ...any) { p.log.Tell(slog.LevelWarn, fmt.Sprintf(format, args...)) }
	cmd.PreRunE = func(*cobra.Command, []string) error {
		err := c.Check()
		p.log.HideKey(c.Key)
		if err != nil || yes {
			return err
		}
		c.Agree = func(ctx context.Context, question string) (bool, error) { return p.confirm(ctx, question, otherwise) }
		return p.attended(otherwise)
	}
	c.Register(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
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
