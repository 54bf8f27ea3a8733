package console

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// Subcommand checks the arguments of a command that has subcommands: an argument that
// is left over names no command and is an error.
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
	meant := map[string]string{"version": "--version", "list": "forms", "ls": "forms", "download": "export"}[args[0]]
	if meant != "" && (meant == "--version" || slices.Contains(names, meant)) {
		return Usagef("%s; did you mean %s?", text, meant)
	}
	return Usagef("%s%s", text, cmp.Or(plain.Hint(args[0], names), "; its commands are "+strings.Join(names, ", ")))
}

// Arguments returns the check of a command that takes least to most arguments. what
// names the arguments in the error: "one definition, such as feedback.yaml". A flag that took
// another flag for its value is refused too.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) (err error) {
		cmd.Flags().Visit(func(f *pflag.Flag) {
			name, _, _ := strings.Cut(strings.Trim(f.Value.String(), "[]"), "=") // the brackets of a flag that is repeatable
			if strings.HasPrefix(name, "--") && cmd.Flag(name[2:]) != nil {
				err = Usagef("--%s has no value: the flag %s stands in its place", f.Name, name)
			}
		})
		if err != nil || least <= len(args) && len(args) <= most {
			return err
		}
		text := fmt.Sprintf("%s takes %s; you gave %d", cmd.CommandPath(), what, len(args))
		if len(args) > most {
			text += fmt.Sprintf(", and %q is too many (put a value with spaces into quotes)", args[most])
		}
		form, out := cmd.Flag("form"), cmd.Flag("output")
		open := out != nil && (!out.Changed || slices.Contains([]string{"ut", "utput"}, out.Value.String())) // -out means -o ut
		switch file := len(args) > 0 && strings.HasSuffix(args[0], ".yaml"); {
		case most > 0 || form == nil:
		case file && cmd.Name() == "export":
			text += "; did you mean formetl run " + definition.ShellWord(args[0]) + "?"
		case open && (file || form.Changed):
			text += "; did you mean --output " + definition.ShellWord(args[0]) + "?"
		case !form.Changed:
			text += "; did you mean --form " + definition.ShellWord(args[0]) + "?"
		}
		return Usagef("%s", text)
	}
}

// The arguments that most commands take.
var (
	NoArguments   = Arguments(0, 0, "only flags, no arguments")
	OneDefinition = Arguments(1, 1, "one definition, such as feedback.yaml")
	Definitions   = Arguments(1, math.MaxInt, "one or more definitions, such as feedback.yaml")
)

// OptionalDefinition checks the arguments of a command that takes a definition, or flags instead.
func OptionalDefinition(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && filepath.Ext(args[0]) == "" {
		if _, err := os.Stat(args[0]); err != nil {
			form := ""
			if cmd.Flag("form") != nil {
				form = "; for a form write --form NAME, and put a value with spaces into quotes"
			}
			if latest := cmd.Flag("latest"); latest != nil && latest.Changed {
				form = "; --latest takes no value: for a number of results write --latest --limit 5"
			}
			return Usagef("%s takes a definition, such as feedback.yaml, and there is no file %q%s", cmd.CommandPath(), args[0], form)
		}
	}
	return Arguments(0, 1, "at most one definition, such as feedback.yaml")(cmd, args)
}

// checkPaths checks the paths that flags give for a leading ~: in --state=~/x a shell does not
// replace it by the user's folder. A dry run writes no report.
func checkPaths(cmd *cobra.Command, _ []string) error {
	for _, name := range []string{"output", "state", "report", "metrics", "schema", "dir", "api-key-file"} {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed || (name == "output" || name == "state") && definition.OnS3(f.Value.String()) {
			continue
		}
		if dry, err := cmd.Flags().GetBool("dry-run"); err == nil && dry && (name == "report" || name == "metrics") {
			return Usagef("--dry-run runs nothing, so there is nothing to write to the file of --%s: leave one of them out", name)
		}
		if err := definition.CheckLocal(f.Value.String()); err != nil {
			return Usagef("--%s %s: %w", name, f.Value, err)
		}
	}
	return nil
}

// unknownFlag returns the error for flags that cannot be read. For an unknown flag the error names
// the flag of the command that was most likely meant.
func unknownFlag(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return Usagef("--%s %q: give %s", wrong.GetFlag().Name, wrong.GetValue(), kindOf(wrong.GetFlag().Value.Type()))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	switch {
	case !ok:
		return &CodeError{Code: ExitUsage, Err: err}
	case cmd.HasSubCommands() && cmd.Flags().NArg() > 0: // a command that does not exist, and its flags
		return Subcommand(cmd, cmd.Flags().Args())
	}
	dash, name := "--", unknown.GetSpecifiedName()
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		dash = "-"
		if len(group) > 1 && group[:1] == name { // as in -form for --form
			name = group
		}
	}
	text := fmt.Sprintf("%s has no flag %s%s", cmd.CommandPath(), dash, name)
	if name == "api-key" || name == "key" {
		return Usagef("%s, because everybody on the machine could read a key on the command line; use --api-key-file FILE or the variable %s", text, definition.KeyVariable)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	if meant := map[string]string{"f": "--form", "url": "--base-url", "json": "--report", "out": "--output", "since": "--from", "start": "--from", "until": "--to", "filter": "--where", "columns": "--select"}[name]; slices.Contains(known, meant) {
		return Usagef("%s; did you mean %s?", text, meant)
	}
	return Usagef("%s%s", text, plain.Hint(name, known))
}

// kindOf says in words which values a flag of this type takes.
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

// AboveZero refuses a flag's number that is 0 or less. A flag that was not given keeps its default,
// even 0. The error proposes a number above 0, or what alternative says, such as to leave the flag
// out.
func AboveZero(set *pflag.FlagSet, name, alternative string) error {
	if !set.Changed(name) {
		return nil
	}
	if n, err := set.GetInt64(name); err != nil || n < 1 {
		return fmt.Errorf("--%s %d: give a number above 0, or %s", name, n, alternative)
	}
	return nil
}
