package cli

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// completionPatience bounds how long a shell waits for the service's forms or columns.
const completionPatience = 3 * time.Second

// complete lets shells complete definitions, forms and columns. What cannot be found in
// time is not completed, and nothing is said of it.
func complete(p *process, commands []*cobra.Command) {
	for _, cmd := range commands {
		complete(p, cmd.Commands())
		if strings.Contains(cmd.Use, "DEFINITION") {
			cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			}
		}
		for name, find := range map[string]func(context.Context, *cobra.Command, []string) []string{
			"form": p.knownForms, "select": p.knownColumns, "where": p.knownColumns,
		} {
			if cmd.Flags().Lookup(name) == nil {
				continue
			}
			_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) { // the flag is there
				ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
				defer cancel()
				var found []string
				for _, word := range find(ctx, cmd, args) {
					if strings.HasPrefix(word, begun) && !strings.ContainsFunc(word, plain.Unsafe) {
						found = append(found, word)
					}
				}
				return found, cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

// knownForms returns the forms that the given definition names, or else those of the
// account that flags and the environment name.
func (p *process) knownForms(ctx context.Context, cmd *cobra.Command, args []string) (forms []string) {
	if len(args) > 0 {
		defs, err := p.load(ctx, &flags.Definition{NoCommands: true}, args[:1], withoutKey)
		if err != nil {
			return nil
		}
		for _, form := range defs[0].Forms {
			if !definition.IsGlob(form) {
				forms = append(forms, form)
			}
		}
		return forms
	}
	def, o, err := p.named(cmd)
	if err != nil {
		return nil
	}
	client, err := account.NewClient(ctx, def, o)
	if err != nil {
		return nil
	}
	defer client.Close()
	found, _ := client.Forms(ctx) // an error completes nothing
	for _, f := range found {
		forms = append(forms, f.Directory)
	}
	return forms
}

// knownColumns returns the names of the columns of the form that flags name.
func (p *process) knownColumns(ctx context.Context, cmd *cobra.Command, _ []string) (names []string) {
	def, o, err := p.named(cmd)
	if err != nil || flags.CheckForm(def.Forms[0]) != nil {
		return nil
	}
	known, _ := columnsOf(ctx, def, o) // an error completes nothing
	for _, c := range known {
		names = append(names, c.Name)
	}
	return names
}

// named returns a definition of the service and the form that a command's flags name, which
// asks once and waits for nothing.
func (p *process) named(cmd *cobra.Command) (*definition.Definition, account.Options, error) {
	var service flags.Service
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	service.Register(own)
	form, names := "", "label"
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "form":
			form = f.Value.String()
			if list, ok := f.Value.(pflag.SliceValue); ok { // the shell's line is read twice
				form = list.GetSlice()[0]
			}
		case f.Name == "names":
			names = f.Value.String()
		case own.Lookup(f.Name) != nil:
			_ = own.Set(f.Name, f.Value.String()) // it was read once
		}
	})
	source, err := service.Source(p.lookup)
	if err != nil {
		return nil, account.Options{}, err
	}
	p.log.HideKey(source.Key)
	source.Requests.Retries = 0
	o, err := p.start(slog.LevelError, new(flags.Range).Options)
	state, _, _ := flags.StateFolder("") // without it, no budget is remembered
	return &definition.Definition{
		Source: source, State: state, Forms: []string{form}, Labels: names == "label",
	}, o, err
}
