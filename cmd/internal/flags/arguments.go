package flags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/nearest"
)

// Unknown is the error of flags that cannot be read. To an unknown flag it adds
// the nearest known name.
func Unknown(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return exit.Usagef("--%s %q: give %s", wrong.GetFlag().Name, wrong.GetValue(), kindOf(wrong.GetFlag().Value.Type()))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	name := unknown.GetSpecifiedName()
	text := fmt.Sprintf("%s has no flag --%s", cmd.CommandPath(), name)
	if name == "api-key" {
		return exit.Usagef("%s: a key on the command line can be read by everybody on the machine; use --api-key-file or %s", text, definition.KeyVariable)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest.Word(name, names); near != "" {
		text += "; did you mean --" + near + "?"
	}
	return exit.Usagef("%s", text)
}

// kindOf says what a flag of a type takes.
func kindOf(flagType string) string {
	switch flagType {
	case "int", "int64":
		return "a whole number"
	case "bool":
		return "true or false"
	case "duration":
		return "a length of time such as 30s or 5m"
	}
	return "another value"
}

// Subcommand is the check of a command that has subcommands: an argument that
// is left over names no command.
func Subcommand(cmd *cobra.Command, args []string) error {
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
	if args[0] == "version" {
		return exit.Usagef("%s; did you mean --version?", text)
	}
	if near := nearest.Word(args[0], names); near != "" {
		return exit.Usagef("%s; did you mean %s?", text, near)
	}
	return exit.Usagef("%s; its commands are %s", text, strings.Join(names, ", "))
}

// NoArguments is the check of a command that takes flags alone.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Usagef("%s takes flags and no arguments, not %q", cmd.CommandPath(), args[0])
}

// Arguments is the check of a command that takes least to most arguments; what
// names them in the error: "one definition, such as feedback.yaml".
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		return exit.Usagef("%s takes %s; %d were given", cmd.CommandPath(), what, len(args))
	}
}

// OneDefinition is the check of a command on one definition.
func OneDefinition() cobra.PositionalArgs {
	return Arguments(1, 1, "one definition, such as feedback.yaml")
}

// Definitions is the check of a command on one or more definitions.
func Definitions(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return exit.Usagef("%s takes one or more definitions, such as feedback.yaml; none was given", cmd.CommandPath())
}
