package cli

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
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
		switch {
		case err != nil || r.value == nil: // nil: a person did not agree
			return err
		case asJSON:
			return console.JSON(p.stdout, r.value)
		}
		return console.Table(p.stdout, r.rows...)
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
