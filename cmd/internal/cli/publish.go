package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
)

func publishCommand(p *process) *cobra.Command {
	var form string
	var secure bool
	cmd := askCommand(p, &cobra.Command{
		Use:   "publish --form FORM",
		Short: "Show a form's publishing links and embed codes",
		Example: `  formetl publish --base-url https://fs1.example.com --account acme --form form1
  formetl publish --form form1 --secure --json`,
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
