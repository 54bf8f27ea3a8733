package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
)

func formsCommand(p *process) *cobra.Command {
	return askCommand(p, &cobra.Command{
		Use:   "forms",
		Short: "List the account's forms",
		Example: `  formetl forms --base-url https://fs1.example.com --account acme
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
