package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// reply is what a command prints of the service's answer: value with --json, otherwise rows. If
// value is nil, the service was not asked.
type reply struct {
	value any
	rows  [][]string
}

// asked holds the flags that say which service a command asks: a definition's, or that of flags.
type asked struct {
	service     console.ServiceFlags
	given       console.DefinitionFlags // further flags of commands on a definition
	form, names string
}

// register adds the flags of every command that asks a service. otherwise says which form is meant
// without --form; "" if the command is not about a form.
func (a *asked) register(set *pflag.FlagSet, otherwise string) {
	a.service.Register(set, "the definition's, or ")
	a.given.RegisterVariables(set)
	if otherwise != "" {
		set.StringVar(&a.form, "form", "", "name of the form, as formetl forms lists it (default: "+otherwise+")")
	}
}

// registerResults adds the flags of a command that reads results, except those of the range.
func (a *asked) registerResults(set *pflag.FlagSet) {
	a.register(set, "the first form of the definition")
	console.RegisterNames(set, &a.names, "; beside a DEFINITION its own is the default")
	set.StringVar(&a.given.State, "state", "", "folder or s3://bucket/prefix/ where requests are counted for the limits per minute and per day (default: the definition's, or formetl/ in your cache folder)")
}

// open starts a command. It returns the definition in the file, or without a file a definition made
// of the flags, with this name.
func (a *asked) open(cmd *cobra.Command, p *process, definitions []string, name string) (def *definition.Definition, o pipelines.Options, err error) {
	if len(definitions) == 0 {
		if def, err = p.define(name, a.form, &a.service, a.given.State); err == nil {
			o, err = p.start(slog.LevelWarn, a.given.Options)
		}
		return def, o, err
	}
	if err := console.BesideDefinition(cmd.Flags(), definitions[0]); err != nil {
		return nil, o, err
	}
	a.given.KeyFile = a.service.KeyFile
	defs, o, err := p.open(cmd.Context(), &a.given, definitions, slog.LevelWarn, withKey)
	if err != nil {
		return nil, o, err
	}
	return defs[0], o, nil
}

// openResults is open for a command that reads results of one form: the form of --form, or
// the definition's first.
func (a *asked) openResults(cmd *cobra.Command, p *process, definitions []string, name string) (*definition.Definition, pipelines.Options, error) {
	naming, err := console.Naming(a.names)
	if err == nil && len(definitions) == 0 {
		err = console.CheckForm(a.form)
	}
	if err != nil {
		return nil, pipelines.Options{}, err
	}
	def, o, err := a.open(cmd, p, definitions, name)
	if err != nil {
		return nil, o, err
	}
	if a.form = cmp.Or(a.form, def.Forms[0]); len(definitions) > 0 && definition.IsGlob(a.form) {
		return nil, o, console.Usagef("the definition names its forms by patterns, and this command is for one form: give it with --form; `formetl forms %s` lists the forms", definition.ShellWord(definitions[0]))
	}
	if len(definitions) == 0 || cmd.Flags().Changed("names") {
		def.Names = naming
	}
	return def, o, nil
}

// besideDefinition ends the help of commands that take the service from a definition or from flags.
const besideDefinition = `

A DEFINITION names the service: beside it leave out --account, --retries and the like;
--api-key-file may stay.`

// askCommand completes a command that sends one transaction. After flags and arguments were checked
// it calls ask, with the form if the command is about one.
func askCommand(p *process, cmd *cobra.Command, aboutForm bool, ask func(ctx context.Context, client extract.Client, def *definition.Definition, form string) (reply, error)) *cobra.Command {
	var a asked
	var asJSON bool
	a.register(cmd.Flags(), map[bool]string{true: "the definition's form, if it has only one"}[aboutForm])
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Long = cmp.Or(cmd.Long, cmd.Short+".") + besideDefinition
	cmd.Args = console.OptionalDefinition
	cmd.RunE = func(cmd *cobra.Command, definitions []string) error {
		def, o, err := a.open(cmd, p, definitions, "")
		if err != nil {
			return err
		}
		if aboutForm {
			if a.form == "" && len(def.Forms) == 1 && !def.ListsForms() {
				a.form = def.Forms[0]
			}
			if err := console.CheckForm(a.form); err != nil {
				return &console.CodeError{Code: console.ExitUsage, Err: err}
			}
		}
		if cmd.Name() == "copy" && def.Source.API == definition.APIAuto { // API v2 cannot copy
			def.Source.SetAPI(definition.APIv1)
		}
		client, err := pipelines.NewClient(cmd.Context(), def, o)
		if err != nil {
			return err
		}
		defer client.Close()
		r, err := ask(cmd.Context(), client, def, a.form)
		if err != nil || r.value == nil {
			return err
		}
		return console.Show(p.stdout, asJSON, r.value, console.Columns("", r.rows))
	}
	return cmd
}

func formsCommand(p *process) *cobra.Command {
	return askCommand(p, &cobra.Command{
		Use:   "forms [DEFINITION]",
		Short: "List the account's forms",
		Example: `  formetl forms --base-url https://fs1.example.com --account acme
  formetl forms feedback.yaml
  formetl forms --json | jq -r '.[].directory'`,
	}, false, func(ctx context.Context, c extract.Client, _ *definition.Definition, _ string) (reply, error) {
		forms, err := c.Forms(ctx)
		return reply{append([]extract.Form{}, forms...), formRows(forms...)}, err
	})
}

func formRows(forms ...extract.Form) [][]string {
	return console.Rows([][]string{{"FORM", "TITLE", "ID", "DESCRIPTION"}}, forms, func(f extract.Form) []string {
		return []string{f.Directory, f.Name, f.ID, f.Description}
	})
}

func statusCommand(p *process) *cobra.Command {
	return askCommand(p, &cobra.Command{
		Use:   "status [DEFINITION] [--form FORM]",
		Short: "Show whether a form is open, and how many results it has and may have",
		Example: `  formetl status --base-url https://fs1.example.com --account acme --form form1
  formetl status feedback.yaml`,
	}, true, func(ctx context.Context, c extract.Client, _ *definition.Definition, form string) (reply, error) {
		status, err := c.Status(ctx, form)
		rows := [][]string{{"form", form}, {"state", status.State}, {"last modified", status.LastModified}}
		rows = console.Rows(rows, status.Limits, func(l extract.Limit) []string {
			if l.Total == 0 { // API v2 gives no quotas
				return []string{l.Type, plain.Thousands(l.Used)}
			}
			return []string{l.Type, plain.Thousands(l.Used) + " of " + plain.Thousands(l.Total)}
		})
		status.Limits = append([]extract.Limit{}, status.Limits...) // no limits are printed as [], not null
		return reply{struct {
			Form string `json:"form"`
			extract.Status
		}{form, status}, rows}, err
	})
}

func publishCommand(p *process) *cobra.Command {
	var secure bool
	cmd := askCommand(p, &cobra.Command{
		Use:   "publish [DEFINITION] [--form FORM]",
		Short: "Show a form's public links and embed codes; nothing is published",
		Example: `  formetl publish --base-url https://fs1.example.com --account acme --form form1
  formetl publish feedback.yaml --secure --json`,
	}, true, func(ctx context.Context, c extract.Client, _ *definition.Definition, form string) (reply, error) {
		publish, err := c.Publish(ctx, form, secure)
		rows := console.Rows([][]string{{"KIND", "LINK OR CODE"}}, publish.URLs, func(u extract.PublishURL) []string { return []string{u.Type, u.URL} })
		rows = console.Rows(rows, publish.Codes, func(code string) []string { return []string{"embed", code} })
		// No URLs or codes are printed as [], not null.
		publish.URLs, publish.Codes = append([]extract.PublishURL{}, publish.URLs...), append([]string{}, publish.Codes...)
		return reply{struct {
			Form string `json:"form"`
			extract.Publish
		}{form, publish}, rows}, err
	})
	cmd.Flags().BoolVar(&secure, "secure", false, "show https links (API v1: else http)")
	return cmd
}

func countCommand(p *process) *cobra.Command {
	var span console.RangeFlags
	var options pipelines.Options
	var q extract.CountQuery
	cmd := askCommand(p, &cobra.Command{
		Use:   "count [DEFINITION] [--form FORM]",
		Short: "Count a form's results",
		Long: `Count prints how many results the service has, in all or in a range of time or ids, as a
bare number. With a definition too it counts all results of the form, not only those of
the definition's range: give a range by --from and --to.`,
		Example: `  formetl count --base-url https://fs1.example.com --account acme --form form1
  formetl count feedback.yaml --from 2026-01-01 --to 2026-02-01
  formetl count --form form1 --min-id 100001`,
	}, true, func(ctx context.Context, c extract.Client, def *definition.Definition, form string) (reply, error) {
		q.Window = options.Range.In(def.Source.Zone, time.Now())
		if w := q.Window; !w.From.IsZero() && !w.To.IsZero() && !w.From.Before(w.To) {
			return reply{}, console.Usagef(emptyRange, load.Wall(w.From), load.Wall(w.To))
		}
		n, err := extract.Counting(c).Count(ctx, form, q)
		return reply{struct {
			Form  string `json:"form"`
			Count int64  `json:"count"`
		}{form, n}, [][]string{{strconv.FormatInt(n, 10)}}}, err
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		options, err = span.Options()
		const leaveOut = "leave it out for no limit"
		if err = cmp.Or(err, console.AboveZero(cmd.Flags(), "min-id", leaveOut), console.AboveZero(cmd.Flags(), "max-id", leaveOut)); err != nil {
			return err
		}
		if ids := q.IDs; ids.Max > 0 && ids.Min > ids.Max {
			return fmt.Errorf("--max-id %d is below --min-id %d: swap them", ids.Max, ids.Min)
		}
		return nil
	}
	span.Register(cmd.Flags(), "no limit")
	cmd.Flags().Int64Var(&q.IDs.Min, "min-id", 0, "lowest result id to count")
	cmd.Flags().Int64Var(&q.IDs.Max, "max-id", 0, "highest result id to count")
	return cmd
}

func copyCommand(p *process) *cobra.Command {
	var to extract.CopyTarget
	var yes bool
	cmd := askCommand(p, &cobra.Command{
		Use:   "copy [DEFINITION] [--form FORM]",
		Short: "Copy a form, without its results, to a new one",
		Long: `Copy makes a new form like an existing one, without its results, in this account or
another one. It asks first, unless you give --yes. Whatever --retries says, it sends the
request once: if the answer is lost, look with formetl forms whether the copy exists.`,
		Example: `  formetl copy --base-url https://fs1.example.com --account acme --form form1 --to-form "Form 2"
  formetl copy --form form1 --to-account other --yes`,
	}, true, func(ctx context.Context, c extract.Client, _ *definition.Definition, form string) (reply, error) {
		if !yes {
			question := "Copy form " + plain.Line(form)
			if to.Form != "" {
				question += fmt.Sprintf(" as %q", plain.Line(to.Form))
			}
			if to.Account != "" {
				question += " to account " + plain.Line(to.Account)
			}
			agreed, err := p.confirm(ctx, question+"? [y/N] ", "copy the form", "nothing was sent")
			if err != nil || !agreed {
				return reply{}, err
			}
		}
		made, err := c.Copy(ctx, form, to)
		return reply{made, formRows(made)}, err
	})
	set := cmd.Flags()
	set.StringVar(&to.Account, "to-account", "", "account that gets the copy, if the API key allows that (default: this account)")
	set.StringVar(&to.Form, "to-form", "", "title of the new form, whose name the service makes (default: the original's title)")
	set.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
