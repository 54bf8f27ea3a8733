package flags

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// Definition are the flags of commands that work from definitions. A flag takes
// precedence over the definition; the environment never does.
type Definition struct {
	Range
	KeyFile, State string
	Forms          []string
	// NoCommands tells that no command is run that prints a key.
	NoCommands bool
	variables  []string
}

// Register adds all flags.
func (d *Definition) Register(set *pflag.FlagSet) {
	d.register(set, "beginning of the range, wall clock of the account's zone (default: the definition's)", "end of the range, exclusive")
	d.RegisterForms(set)
	d.RegisterKey(set, ", instead of the definition's reference")
}

// RegisterForms adds --form and --state alone.
func (d *Definition) RegisterForms(set *pflag.FlagSet) {
	set.StringArrayVar(&d.Forms, "form", nil, "only this form of the definition; repeatable")
	set.StringVar(&d.State, "state", "", "folder of budgets and checkpoints, or s3://bucket/prefix/ (default: the definition's)")
	d.RegisterVariables(set)
}

// RegisterVariables adds --var alone.
func (d *Definition) RegisterVariables(set *pflag.FlagSet) {
	set.StringArrayVar(&d.variables, "var", nil, "NAME=VALUE for ${var:NAME} in the definition; repeatable")
}

// Variables are the values of --var by name.
func (d *Definition) Variables() (map[string]string, error) {
	values := map[string]string{}
	for _, given := range d.variables {
		name, value, ok := strings.Cut(given, "=")
		_, twice := values[name]
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("--var %q: give NAME=VALUE, such as --var stage=test", given)
		case strings.TrimSpace(value) == "": // as a variable of the environment that is empty
			return nil, fmt.Errorf("--var %s: the value is empty; give --var %s=VALUE, or leave it out for the default by vars", name, name)
		case twice:
			return nil, fmt.Errorf("--var %s was given twice: give it once", name)
		}
		values[name] = value
	}
	return values, nil
}

// Given are the flags that a command must repeat so that it does the same with the
// definition: those that say what its values are, and which of its forms are meant.
func (d *Definition) Given() (words []string) {
	for _, f := range []struct {
		name   string
		values []string
	}{{"--var", d.variables}, {"--form", d.Forms}, {"--state", []string{d.State}}, {"--api-key-file", []string{d.KeyFile}}} {
		for _, value := range f.values {
			if value != "" {
				words = append(words, f.name, value)
			}
		}
	}
	return words
}

// RegisterKey adds --api-key-file. The end of its help says when the key is used.
func (d *Definition) RegisterKey(set *pflag.FlagSet, when string) {
	set.StringVar(&d.KeyFile, "api-key-file", "", "file that holds the API key"+when)
}

// Options are what the flags tell a run besides its definition.
func (d *Definition) Options() (account.Options, error) {
	o, err := d.Range.Options()
	o.Forms = d.Forms
	return o, err
}

// Range are the flags --from and --to: wall-clock time of the account's zone.
type Range struct {
	from, to string
	set      *pflag.FlagSet
}

// RegisterSample adds the flags for a command that samples the range.
func (r *Range) RegisterSample(set *pflag.FlagSet) {
	r.register(set, "sample from here on, wall clock of the account's zone", "sample up to here, exclusive")
}

// Register adds the flags for a command that reads the range.
func (r *Range) Register(set *pflag.FlagSet) {
	r.register(set, "beginning of the range, wall clock of the account's zone", "end of the range, exclusive")
}

func (r *Range) register(set *pflag.FlagSet, from, to string) {
	r.set = set
	set.StringVar(&r.from, "from", "", from)
	set.StringVar(&r.to, "to", "", to)
}

// Options holds the range, From and To zero where the flags were not given. The
// error is of a time that cannot be read, or of an empty range.
func (r *Range) Options() (o account.Options, err error) {
	for _, flag := range []struct {
		name, value string
		into        *time.Time
	}{{"from", r.from, &o.From}, {"to", r.to, &o.To}} {
		if flag.value == "" && (r.set == nil || !r.set.Changed(flag.name)) {
			continue
		}
		if flag.value == "" { // a variable of the shell that is not set
			return o, fmt.Errorf("--%s: the value is empty; give a date such as 2026-01-31, or leave the flag out", flag.name)
		}
		if *flag.into, err = definition.ParseWallTime(flag.value); err != nil {
			return o, fmt.Errorf("--%s: %w", flag.name, err)
		}
	}
	if !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To) {
		return o, fmt.Errorf("--to %s does not lie after --from %s (--to is exclusive)", r.to, r.from)
	}
	return o, nil
}
