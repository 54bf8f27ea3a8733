package flags

import (
	"errors"
	"fmt"
	"slices"

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
	if flag := meant(name, cmd.Flags()); flag != "" {
		text += "; did you mean " + flag + "?"
	}
	return exit.Usagef("%s", text)
}

// synonym is what other programs call a flag of formetl, and what stands for it here.
// Of several flags the command's first one is meant.
type synonym struct {
	words []string
	flags []string
	value string // of the flag, where it needs one to mean the same
}

func synonyms() []synonym {
	return []synonym{
		{words: []string{"o", "out", "outfile", "dest", "destination"}, flags: []string{"output"}},
		{words: []string{"file"}, flags: []string{"output", "report"}},
		{words: []string{"columns", "column", "fields", "cols"}, flags: []string{"select"}},
		{words: []string{"filter", "search", "query"}, flags: []string{"where"}},
		{words: []string{"since", "start", "after", "begin", "min-date"}, flags: []string{"from"}},
		{words: []string{"until", "end", "before", "max-date"}, flags: []string{"to"}},
		{words: []string{"k", "key", "key-file", "token", "apikey"}, flags: []string{"api-key-file"}},
		{words: []string{"u", "url", "server", "host", "endpoint"}, flags: []string{"base-url"}},
		{words: []string{"a", "user", "username"}, flags: []string{"account"}},
		{words: []string{"z", "tz", "zone"}, flags: []string{"timezone"}},
		{words: []string{"f"}, flags: []string{"form"}},
		{words: []string{"n", "l", "max", "rows", "head", "count"}, flags: []string{"limit", "results"}},
		{words: []string{"j", "jobs", "parallel", "workers", "threads"}, flags: []string{"concurrency"}},
		{words: []string{"rate", "rate-limit", "per-minute"}, flags: []string{"requests-per-minute"}},
		{words: []string{"overwrite", "clobber"}, flags: []string{"force"}},
		{words: []string{"y", "assume-yes", "force"}, flags: []string{"yes"}},
		{words: []string{"type"}, flags: []string{"format"}},
		{words: []string{"labels"}, flags: []string{"names", "custom-labels"}},
		{words: []string{"v", "verbose", "debug"}, flags: []string{"log-level"}, value: "debug"},
		{words: []string{"q", "quiet", "silent"}, flags: []string{"log-level"}, value: "error"},
		{words: []string{"json"}, flags: []string{"log-format"}, value: "json"},
	}
}

// meant returns the flag that a name most likely stands for, "" if none is near: what
// other programs call it, else the nearest name or synonym.
func meant(name string, set *pflag.FlagSet) string {
	var words []string
	set.VisitAll(func(f *pflag.Flag) { words = append(words, f.Name) })
	stands := map[string]string{}
	for _, s := range synonyms() {
		i := slices.IndexFunc(s.flags, func(flag string) bool { return set.Lookup(flag) != nil })
		for _, word := range s.words {
			if i < 0 || stands[word] != "" || set.Lookup(word) != nil {
				continue
			}
			stands[word] = "--" + s.flags[i]
			if s.value != "" {
				stands[word] += " " + s.value
			}
			if len(word) > 1 {
				words = append(words, word)
			}
		}
	}
	if exact := stands[name]; exact != "" || len(name) == 1 {
		return exact
	}
	near := nearest.Word(name, words)
	if stands[near] != "" || near == "" {
		return stands[near]
	}
	return "--" + near
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
