package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/nearest"
)

// Unknown is the error of flags that cannot be read. To an unknown flag it adds
// the flag of the command that was most likely meant.
func Unknown(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return exit.Usagef("--%s %q: give %s", wrong.GetFlag().Name, wrong.GetValue(), kindOf(wrong.GetFlag().Value.Type()))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	dash, name := "--", unknown.GetSpecifiedName()
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		dash = "-"
		if len(group) > 1 && group[:1] == name { // as in -form for --form
			name = group
		}
	}
	text := fmt.Sprintf("%s has no flag %s%s", cmd.CommandPath(), dash, name)
	if name == "api-key" {
		return exit.Usagef("%s: a key on the command line can be read by everybody on the machine; use --api-key-file or %s", text, definition.KeyVariable)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	return exit.Usagef("%s%s", text, nearest.Hint(name, known))
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

// AboveZero refuses a number of a flag that is 0 or less. A flag that was not given
// has its default, which may mean that there is no bound; otherwise says so.
func AboveZero(set *pflag.FlagSet, name, otherwise string) error {
	if !set.Changed(name) {
		return nil
	}
	if n, err := set.GetInt64(name); err != nil || n < 1 {
		return fmt.Errorf("--%s %d: give a number above 0, or %s", name, n, otherwise)
	}
	return nil
}
