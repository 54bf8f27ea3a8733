package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/internal/nearest"
	"github.com/formetl/formetl/pipelines/definition"
)

// usageError is a wrong flag or argument.
type usageError struct{ err error }

// Error is the flag's error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns it.
func (e *usageError) Unwrap() error { return e.err }

// flagError adds the nearest known name to an unknown flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return &usageError{err}
	}
	name := unknown.GetSpecifiedName()
	text := fmt.Sprintf("%s has no flag --%s", cmd.CommandPath(), name)
	if name == "api-key" {
		return &usageError{errors.New(text + ": a key on the command line can be read by everybody on the machine; use --api-key-file or " + definition.KeyVariable)}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest.Word(name, names); near != "" {
		text += "; did you mean --" + near + "?"
	}
	return &usageError{errors.New(text)}
}

// knownCommand is the check of a command that has subcommands: what is left
// of the arguments is no command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := nearest.Word(args[0], names); near != "" {
		return &usageError{fmt.Errorf("%s; did you mean %s?", text, near)}
	}
	return &usageError{fmt.Errorf("%s; its commands are %s", text, strings.Join(names, ", "))}
}

// noArguments is the check of a command that takes flags alone.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{fmt.Errorf("%s takes flags and no arguments, not %q", cmd.CommandPath(), args[0])}
}

// oneDefinition and definitions are the checks of commands on definitions.
func oneDefinition(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &usageError{fmt.Errorf("%s takes one definition, such as feedback.yaml; %d were given", cmd.CommandPath(), len(args))}
}

func definitions(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return &usageError{fmt.Errorf("%s takes one or more definitions, such as feedback.yaml; none was given", cmd.CommandPath())}
}
