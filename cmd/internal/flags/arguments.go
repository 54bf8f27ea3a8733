package flags

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/nearest"
)

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
	return exit.Usagef("%s%s", text, cmp.Or(nearest.Hint(args[0], names), "; its commands are "+strings.Join(names, ", ")))
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

// Paths checks the paths that flags give. A shell does not replace what stands behind "=",
// such as --state=~/x.
func Paths(cmd *cobra.Command, _ []string) error {
	for _, name := range []string{"output", "state", "report", "metrics", "schema", "dir", "api-key-file"} {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed || (name == "output" || name == "state") && definition.OnS3(f.Value.String()) {
			continue
		}
		if err := definition.CheckLocal(f.Value.String()); err != nil {
			return exit.Usagef("--%s %s: %w", name, f.Value, err)
		}
	}
	return nil
}
