package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// definitionFlags are those of every command that works from a definition.
// Flags stand over the definition; the environment never does.
type definitionFlags struct {
	from, to, keyFile, state string
	forms                    []string
}

func (d *definitionFlags) register(f *pflag.FlagSet) {
	f.StringVar(&d.from, "from", "", "beginning of the range, wall clock of the account's zone (default: the definition's)")
	f.StringVar(&d.to, "to", "", "end of the range, exclusive")
	f.StringArrayVar(&d.forms, "form", nil, "only this form of the definition; repeatable")
	f.StringVar(&d.state, "state", "", "folder of budgets and spool (default: the definition's)")
	f.StringVar(&d.keyFile, "api-key-file", "", "file that holds the API key, instead of the definition's reference")
}

// options turns the flags into what a run is told besides its definition.
func (d *definitionFlags) options() (pipelines.Options, error) {
	o := pipelines.Options{Tables: tables(), Forms: d.forms, Client: clientOptions()}
	return o, parseRange(d.from, d.to, &o)
}

func clientOptions() pipelines.ClientOptions {
	return pipelines.ClientOptions{UserAgent: "formetl/" + version()}
}

func parseRange(from, to string, o *pipelines.Options) (err error) {
	if from != "" {
		if o.From, err = definition.ParseWallTime(from); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}
	if to != "" {
		if o.To, err = definition.ParseWallTime(to); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	if !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To) {
		return fmt.Errorf("--to %s does not lie after --from %s (--to is exclusive)", to, from)
	}
	return nil
}

// secrets tells whether a command needs the API key.
type secrets bool

const (
	withSecrets    secrets = true
	withoutSecrets secrets = false
)

// load reads definitions and checks all of them before anything is asked of a
// service. Everything that is wrong in any of them is the error.
func (d *definitionFlags) load(a *app, files []string, s secrets) ([]*definition.Definition, error) {
	o := definition.LoadOptions{Lookup: a.lookup, Formats: tables().Formats, Schemes: schemes(), WithoutSecrets: !bool(s)}
	if d.keyFile != "" && s {
		key, err := definition.KeyFromFile(d.keyFile)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--api-key-file: %w", err)}
		}
		o.Key = key
	}
	var defs []*definition.Definition
	var failures []error
	for _, file := range files {
		def, err := definition.Load(file, o)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		a.usesKey(def.Source.Key)
		if d.state != "" {
			if def.State, err = filepath.Abs(d.state); err != nil {
				return nil, err
			}
		}
		defs = append(defs, def)
	}
	return defs, errors.Join(failures...)
}
