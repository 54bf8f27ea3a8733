package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
)

// askFlags are those of the commands that ask the service one thing.
type askFlags struct {
	service serviceFlags
	form    string
	json    bool
}

// askCommand is a command that sends one transaction; ask begins after flags
// and arguments were checked.
func (a *app) askCommand(cmd *cobra.Command, f *askFlags, ofForm bool, ask func(context.Context, extract.Client) error) *cobra.Command {
	f.service.register(cmd)
	if ofForm {
		cmd.Flags().StringVar(&f.form, "form", "", "the form's directory")
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print as JSON")
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if ofForm {
			if err := checkForm(f.form); err != nil {
				return err
			}
		}
		source, err := f.service.source(a)
		if err != nil {
			return err
		}
		log, err := a.begin(levelWarn)
		if err != nil {
			return err
		}
		state, err := stateFolder("")
		if err != nil {
			return err
		}
		client, err := pipelines.NewClient(source, state, pipelines.Options{Logger: log.Logger, Client: clientOptions()})
		if err != nil {
			return err
		}
		defer client.Close()
		return ask(cmd.Context(), client)
	}
	return cmd
}

// checkForm checks --form where a command is about one form.
func checkForm(form string) error {
	switch form {
	case "":
		return errors.New("no form: give --form; `formetl forms` lists them")
	case ".", "..":
		return fmt.Errorf("--form %q is no form; `formetl forms` lists them", form)
	}
	if strings.ContainsAny(form, "/\\\x00") {
		return fmt.Errorf("--form %q: a form's directory holds no slash; `formetl forms` lists them", form)
	}
	return nil
}

func (a *app) formsCommand() *cobra.Command {
	var f askFlags
	return a.askCommand(&cobra.Command{
		Use:   "forms",
		Short: "List the account's forms",
		Example: `  formetl forms --base-url https://fs1.example.com --account acme
  formetl forms --json | jq -r '.[].directory'`,
	}, &f, false, func(ctx context.Context, c extract.Client) error {
		forms, err := c.Forms(ctx)
		if err != nil {
			return err
		}
		if f.json {
			return a.printJSON(append([]extract.Form{}, forms...))
		}
		rows := [][]string{{"FORM", "NAME", "ID", "DESCRIPTION"}}
		for _, form := range forms {
			rows = append(rows, formRow(form))
		}
		return a.printTable(rows...)
	})
}

func formRow(f extract.Form) []string { return []string{f.Directory, f.Name, f.ID, f.Description} }

func (a *app) statusCommand() *cobra.Command {
	var f askFlags
	return a.askCommand(&cobra.Command{
		Use:     "status --form FORM",
		Short:   "Show whether a form is open, and how much of its quotas is used",
		Example: `  formetl status --base-url https://fs1.example.com --account acme --form form1`,
	}, &f, true, func(ctx context.Context, c extract.Client) error {
		status, err := c.Status(ctx, f.form)
		if err != nil {
			return err
		}
		if f.json {
			status.Limits = append([]extract.Limit{}, status.Limits...)
			return a.printJSON(struct {
				Form string `json:"form"`
				extract.Status
			}{f.form, status})
		}
		rows := [][]string{{"form", f.form}, {"state", status.State}, {"last modified", status.LastModified}}
		for _, l := range status.Limits {
			rows = append(rows, []string{l.Type, thousands(l.Used) + " of " + thousands(l.Total)})
		}
		return a.printTable(rows...)
	})
}

func (a *app) publishCommand() *cobra.Command {
	var f askFlags
	var secure bool
	cmd := a.askCommand(&cobra.Command{
		Use:   "publish --form FORM",
		Short: "Show a form's publishing links and embed codes",
		Example: `  formetl publish --base-url https://fs1.example.com --account acme --form form1
  formetl publish --form form1 --secure --json`,
	}, &f, true, func(ctx context.Context, c extract.Client) error {
		publish, err := c.Publish(ctx, f.form, secure)
		if err != nil {
			return err
		}
		if f.json {
			publish.URLs, publish.Codes = append([]extract.PublishURL{}, publish.URLs...), append([]string{}, publish.Codes...)
			return a.printJSON(struct {
				Form string `json:"form"`
				extract.Publish
			}{f.form, publish})
		}
		rows := [][]string{{"KIND", "LINK OR CODE"}}
		for _, u := range publish.URLs {
			rows = append(rows, []string{u.Type, u.URL})
		}
		for _, code := range publish.Codes {
			rows = append(rows, []string{"embed", code})
		}
		return a.printTable(rows...)
	})
	cmd.Flags().BoolVar(&secure, "secure", false, "ask for https links")
	return cmd
}

func (a *app) countCommand() *cobra.Command {
	var f askFlags
	var from, to string
	var q extract.CountQuery
	cmd := a.askCommand(&cobra.Command{
		Use:   "count --form FORM",
		Short: "Count a form's results",
		Long:  "Count prints how many results the service holds, of a range of time or of ids, as a bare number.",
		Example: `  formetl count --base-url https://fs1.example.com --account acme --form form1
  formetl count --form form1 --from 2026-01-01 --to 2026-02-01
  formetl count --form form1 --min-id 100001`,
	}, &f, true, func(ctx context.Context, c extract.Client) error {
		n, err := c.Count(ctx, f.form, q)
		if err != nil {
			return err
		}
		if f.json {
			return a.printJSON(struct {
				Form  string `json:"form"`
				Count int64  `json:"count"`
			}{f.form, n})
		}
		return a.print(fmt.Appendln(nil, n))
	})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		var o pipelines.Options
		if err := parseRange(from, to, &o); err != nil {
			return err
		}
		q.Window = extract.Window{From: o.From, To: o.To}
		return checkIDs(q.IDs)
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "beginning of the range, wall clock of the account's zone")
	flags.StringVar(&to, "to", "", "end of the range, exclusive")
	flags.Int64Var(&q.IDs.Min, "min-id", 0, "least result id")
	flags.Int64Var(&q.IDs.Max, "max-id", 0, "greatest result id")
	return cmd
}

func checkIDs(ids extract.IDRange) error {
	switch {
	case ids.Min < 0 || ids.Max < 0:
		return errors.New("--min-id and --max-id are result ids: whole numbers from 1 on")
	case ids.Max > 0 && ids.Min > ids.Max:
		return fmt.Errorf("--max-id %d is below --min-id %d", ids.Max, ids.Min)
	}
	return nil
}

func (a *app) copyCommand() *cobra.Command {
	var f askFlags
	var to extract.CopyTarget
	var yes bool
	cmd := a.askCommand(&cobra.Command{
		Use:   "copy --form FORM",
		Short: "Copy a form, without its results, to a new one",
		Long: `Copy makes a new form like another one, in this account or another. It is the
only command that changes anything at the service, so it asks first, or takes
--yes. It is never sent twice: if the answer is lost, look with formetl forms.`,
		Example: `  formetl copy --base-url https://fs1.example.com --account acme --form form1 --to-form "Form 2"
  formetl copy --form form1 --to-account other --yes`,
	}, &f, true, func(ctx context.Context, c extract.Client) error {
		made, err := c.Copy(ctx, f.form, to)
		if err != nil {
			return err
		}
		if f.json {
			return a.printJSON(made)
		}
		return a.printTable([]string{"FORM", "NAME", "ID", "DESCRIPTION"}, formRow(made))
	})
	send := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkForm(f.form); err != nil {
			return err
		}
		if !yes {
			agreed, err := a.confirm(cmd.Context(), copyQuestion(f.form, to), "nothing was sent")
			if err != nil || !agreed {
				return err
			}
		}
		return send(cmd, args)
	}
	flags := cmd.Flags()
	flags.StringVar(&to.Account, "to-account", "", "username of the account that gets the copy (default: this one)")
	flags.StringVar(&to.Form, "to-form", "", "name of the new form (default: the original's)")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func copyQuestion(form string, to extract.CopyTarget) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Copy form %s", cell(form))
	if to.Form != "" {
		fmt.Fprintf(&b, " as %q", cell(to.Form))
	}
	if to.Account != "" {
		fmt.Fprintf(&b, " to account %s", cell(to.Account))
	}
	return b.String() + "? [y/N] "
}
