package cli

import (
	"context"

	"github.com/spf13/cobra"

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
	}, &form, func(ctx context.Context, c *extract.Client) (reply, error) {
		publish, err := c.Publish(ctx, form, secure)
		rows := [][]string{{"KIND", "LINK OR CODE"}}
		for _, u := range publish.URLs {
			rows = append(rows, []string{u.Type, u.URL})
		}
		for _, code := range publish.Codes {
			rows = append(rows, []string{"embed", code})
		}
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
