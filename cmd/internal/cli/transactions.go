package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// reply is what a command prints of the service's answer: value with --json,
// else rows.
type reply struct {
	value any
	rows  [][]string
}

// asked is which account a command asks: that of a definition, or that of flags.
type asked struct {
	service console.ServiceFlags
	given   console.DefinitionFlags // what is said besides a definition
}

// askCommand completes a command that sends one transaction. form is where
// --form goes, nil for a command that is about no form. ask is called after
// flags and arguments were checked.
func askCommand(p *process, cmd *cobra.Command, form *string, ask func(context.Context, extract.Client) (reply, error)) *cobra.Command {
	var a asked
	var asJSON bool
	a.service.Register(cmd.Flags())
	a.given.RegisterVariables(cmd.Flags())
	if form != nil {
		cmd.Flags().StringVar(form, "form", "", "the form's directory (default: the definition's, if it has one form)")
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && filepath.Ext(args[0]) == "" {
			if _, err := os.Stat(args[0]); err != nil {
				return console.Usagef("%s takes a definition, such as feedback.yaml, and %q is no file; a form is given by --form", cmd.CommandPath(), args[0])
			}
		}
		return console.Arguments(0, 1, "at most one definition, such as feedback.yaml")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		def, o, err := a.definition(cmd, p, files)
		if err != nil {
			return err
		}
		if form != nil {
			if *form == "" && len(def.Forms) == 1 && !def.ListsForms() {
				*form = def.Forms[0]
			}
			if err := console.CheckForm(*form); err != nil {
				return &console.CodeError{Code: console.ExitUsage, Err: err}
			}
		}
		client, err := account.NewClient(cmd.Context(), def, o)
		if err != nil {
			return err
		}
		defer client.Close()
		r, err := ask(cmd.Context(), client)
		if err != nil {
			return err
		}
		return console.Show(p.stdout, asJSON, r.value, console.Columns("", r.rows))
	}
	return cmd
}

// definition returns the definition in the file, or one of the flags in place of a file.
func (a *asked) definition(cmd *cobra.Command, p *process, files []string) (*definition.Definition, account.Options, error) {
	if len(files) == 1 {
		if err := console.BesideDefinition(cmd.Flags(), files[0]); err != nil {
			return nil, account.Options{}, err
		}
		a.given.KeyFile = a.service.KeyFile
		defs, o, err := p.open(cmd.Context(), &a.given, files, slog.LevelWarn, withKey)
		if err != nil {
			return nil, o, err
		}
		return defs[0], o, nil
	}
	source, err := a.service.Source(p.lookup)
	if err != nil {
		return nil, account.Options{}, err
	}
	p.log.HideKey(source.Key)
	o, err := p.start(slog.LevelWarn, new(console.RangeFlags).Options)
	state, _, _ := console.StatePlace("", p.lookup) // without it, no budget is remembered
	return &definition.Definition{Source: source, State: state}, o, err
}

// formFlags say which form a command reads: one of a definition, or of the service that
// other flags name.
type formFlags struct {
	asked
	span               console.RangeFlags
	form, names, state string
}

// register adds the flags, all but those of the range.
func (f *formFlags) register(set *pflag.FlagSet) {
	f.service.Register(set)
	f.given.RegisterVariables(set)
	console.RegisterNames(set, &f.names)
	set.StringVar(&f.form, "form", "", "the form's directory (default: the first form of the definition)")
	set.StringVar(&f.state, "state", "", "folder of budgets, or s3://bucket/prefix/ (default: the definition's, or formetl/ in your cache folder)")
}

// open starts a command. It returns the definition in the file, or one with this name that
// the flags make in its place, and the form.
func (f *formFlags) open(cmd *cobra.Command, p *process, files []string, name string) (def *definition.Definition, o account.Options, form string, err error) {
	labels, err := console.ByLabel(f.names)
	if err != nil {
		return nil, o, "", err
	}
	if len(files) == 0 {
		def, err = p.define(name, f.form, &f.service, f.state)
		if err == nil {
			o, err = p.start(slog.LevelWarn, f.span.Options)
		}
		form = f.form
	} else {
		f.given.RangeFlags, f.given.State = f.span, f.state
		def, o, err = f.definition(cmd, p, files)
		if err == nil {
			form = cmp.Or(f.form, def.Forms[0])
		}
		if err == nil && definition.IsGlob(form) {
			err = console.Usagef("the definition names its forms by patterns: give --form; `formetl forms` lists them")
		}
	}
	if err == nil && (len(files) == 0 || cmd.Flags().Changed("names")) {
		def.Labels = labels
	}
	return def, o, form, err
}

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
