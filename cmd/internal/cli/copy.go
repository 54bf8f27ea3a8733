package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
)

func copyCommand(p *process) *cobra.Command {
	var form string
	var to extract.CopyTarget
	var yes bool
	cmd := askCommand(p, &cobra.Command{
		Use:   "copy --form FORM",
		Short: "Copy a form, without its results, to a new one",
		Long: `Copy makes a new form like another one, in this account or another. It is the
only command that changes anything at the service, so it asks first, or takes
--yes. It is never sent twice: if the reply is lost, look with formetl forms.`,
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

func copyQuestion(form string, to extract.CopyTarget) string {
	question := "Copy form " + show.Cell(form)
	if to.Form != "" {
		question += fmt.Sprintf(" as %q", show.Cell(to.Form))
	}
	if to.Account != "" {
		question += " to account " + show.Cell(to.Account)
	}
	return question + "? [y/N] "
}
