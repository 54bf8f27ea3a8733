package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// process is what a command gets from its caller: streams, environment and log.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookup         console.Environment
	log            *console.Log
	resumable      string           // for the hint: how much of what was read a later command resumes
	pipeline       string           // the name of the pipeline that define made of flags, "" for none
	restore        func()           // undoes start's tuning of Go's garbage collector
	ticks          <-chan time.Time // when a run logs its progress; nil: every half minute
}

// start begins a command's own work, after flags and arguments were checked. It calls read for
// the options that the flags give, and adds to them the log, and the destinations and the client
// that write to the log.
func (p *process) start(level slog.Level, read func() (pipelines.Options, error)) (pipelines.Options, error) {
	o, err := read()
	if err == nil {
		err = p.log.Start(level)
	}
	if err != nil {
		return o, err
	}
	p.restore = console.TuneCollector(p.lookup)
	o.Now = time.Now
	if p.pipeline != "" {
		o.RunID = pipelines.NewRunID(o.Now())
		p.log.About(p.pipeline, o.RunID)
		p.log.Logger = p.log.With(slog.String("pipeline", p.pipeline), slog.String("run_id", o.RunID))
	}
	o.Logger, o.BuiltIn = p.log.Logger, console.BuiltIn(p.log.Logger)
	o.Client.UserAgent, o.Client.Contact = "formetl/"+console.Version(), p.log.Contact
	o.Client.Waits = func(until time.Time) {
		p.log.Tell(slog.LevelInfo, "waiting until "+until.Format(time.TimeOnly)+", because this minute's requests are used up")
	}
	return o, nil
}

// machinesZone is the note of commands that take the machine's zone because none was given.
const machinesZone = "note: no time zone was given, so the account's zone is taken to be %s, as on this machine; if it is another, times and ranges can be wrong by hours: give --timezone, such as --timezone America/Chicago"

// Whether a command needs the API keys of its definitions.
const (
	withKey    = true
	withoutKey = false
)

// open starts a command that works from definitions, and reads them.
func (p *process) open(ctx context.Context, f *console.DefinitionFlags, files []string, level slog.Level, key bool) ([]*definition.Definition, pipelines.Options, error) {
	o, err := p.start(level, f.Options)
	if err != nil {
		return nil, o, err
	}
	defs, err := p.load(ctx, f, files, key)
	for _, def := range defs {
		err = errors.Join(err, checkSpan(def, o))
	}
	return defs, o, err
}

// openOutputs opens definitions for a command that looks at their outputs. With withoutKey, the
// API key is read only for definitions whose forms the service must be asked for.
func (p *process) openOutputs(ctx context.Context, f *console.DefinitionFlags, files []string, key bool) ([]*definition.Definition, pipelines.Options, error) {
	defs, o, err := p.open(ctx, f, files, slog.LevelWarn, key)
	for i, def := range defs {
		if err == nil && !key && pipelines.NeedsForms(def, o) {
			defs[i], err = p.loadKey(ctx, f, files[i])
		}
	}
	return defs, o, err
}

// loadKey reads a definition once more, with its API key.
func (p *process) loadKey(ctx context.Context, f *console.DefinitionFlags, file string) (*definition.Definition, error) {
	defs, err := p.load(ctx, f, []string{file}, withKey)
	if err != nil {
		return nil, err
	}
	return defs[0], nil
}

// keyForForms is the end of help texts that say when the commands of openOutputs use the API key.
const keyForForms = ", if the definition names its forms by patterns"

const emptyRange = "the range is empty: it begins at %s and ends at %s; --to is the first day that you do not want, --through the last day that you want"

// checkSpan refuses a range that is empty because of the flags that give a range.
func checkSpan(def *definition.Definition, o pipelines.Options) error {
	if o.Range.From == nil && o.Range.To == nil {
		return nil
	}
	_, err := reading.NewInterval(def, o.Flags(def), o.Now())
	e, ok := errors.AsType[*reading.RangeError](err)
	switch {
	case !ok:
		return err
	case o.Range.From != nil && o.Range.To != nil:
		return console.Usagef(emptyRange, load.Wall(e.Window.From), load.Wall(e.Window.To))
	case o.Range.From == nil:
		return console.Usagef("--to %s is before the beginning of the range at %s, which the definition gives: give a later --to, or also --from", load.Wall(e.Window.To), load.Wall(e.Window.From))
	}
	why := "which the definition gives: give an earlier --from, or also --to"
	if e.Endless {
		why = "up to which results can be read now: give an earlier --from"
	}
	return console.Usagef("--from %s is after the end of the range, %s, %s", load.Wall(e.Window.From), load.Wall(e.Window.To), why)
}

// load reads definitions and checks all of them before any request is sent to a service. The
// error holds every problem of all definitions.
func (p *process) load(ctx context.Context, f *console.DefinitionFlags, files []string, key bool) ([]*definition.Definition, error) {
	variables, err := f.Variables()
	if err != nil {
		return nil, console.Usagef("%w", err)
	}
	o := console.Checks(ctx, p.lookup)
	o.Variables, o.WithoutSecrets = variables, !key
	if f.NoCommands {
		o.Command = nil
	}
	if f.KeyFile != "" && key {
		secret, err := definition.KeyFromFile(f.KeyFile)
		if err != nil {
			return nil, console.Usagef("--api-key-file: %w", err)
		}
		o.Key = secret
	}
	var defs []*definition.Definition
	var failures []error
	for _, file := range files {
		def, err := definition.Load(file, o)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, secret := range def.Secrets() {
			p.log.HideKey(secret)
		}
		def.Given = f.Given()
		if f.State != "" {
			if def.State, err = console.StatePath(f.State); err != nil {
				return nil, err
			}
			def.StateS3 = nil
		}
		defs = append(defs, def)
	}
	if len(failures) == 0 {
		failures = append(failures, checkVariables(variables, defs))
	}
	return defs, errors.Join(failures...)
}

// checkVariables refuses a --var that no definition refers to.
func checkVariables(given map[string]string, defs []*definition.Definition) error {
	var known []string
	for _, def := range defs {
		known = append(known, def.Variables...)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(known, name) {
			continue
		}
		return console.Usagef("--var %s: no definition uses ${var:%s}%s", name, name, plain.Hint(name, known))
	}
	return nil
}

// define makes a definition from flags in place of a file. The definition has the form, if one is
// given, the service that the flags name, and the state folder that they name or else the user's.
func (p *process) define(name, form string, service *console.ServiceFlags, state string) (*definition.Definition, error) {
	source, err := service.Source(p.lookup)
	if err != nil {
		return nil, err
	}
	p.log.HideKey(source.Key)
	p.pipeline = name
	state, note, err := console.StatePlace(state, p.lookup)
	if note != "" {
		p.log.Tell(slog.LevelWarn, note)
	}
	def := &definition.Definition{Name: name, State: state, Source: source, Given: (&console.DefinitionFlags{KeyFile: service.KeyFile}).Given()}
	if form != "" {
		def.Forms = []string{form}
	}
	return def, err
}

// mayWrite refuses a path whose folder does not exist. It refuses to replace what lies at the path,
// unless it is a regular file and force is set.
func mayWrite(path string, force bool) error {
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("its folder does not exist")
		}
		return &load.Error{Kind: load.ErrUnusable, Op: "write", Path: path, Remedy: "make the folder (mkdir -p " + definition.ShellWord(folder) + "), or give another path with --output", Err: err}
	}
	if _, err := os.Lstat(path); err != nil {
		return nil //nolint:nilerr // nothing is there
	}
	if !force {
		return &load.Error{Kind: load.ErrUnusable, Op: "write", Path: path, Remedy: "choose another name with -o, or add --force, which replaces what is there, your edits included", Err: fs.ErrExist}
	}
	return console.CheckOrdinary(path)
}

// writeFile writes a file in one step.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	if err := maybe.WriteFile(path, data, mode); err != nil {
		if inside, ok := errors.AsType[*fs.PathError](err); ok {
			err = inside.Err // its path is that of a temporary file
		}
		return &load.Error{Kind: load.ErrUnusable, Op: "write", Path: path, Remedy: "choose a folder that exists and that you can write to", Err: err}
	}
	return nil
}

// attended returns an error of usage where no person can answer a question, because standard
// input is no terminal or standard error is JSON for programs. what is what --yes does, and
// otherwise says what was not done.
func (p *process) attended(what, otherwise string) error {
	if !console.IsTerminal(p.stdin) || p.log.JSON() {
		return console.Usagef("there is no terminal to ask on, and %s: to %s without asking, add --yes", otherwise, what)
	}
	return nil
}

// confirm asks a yes-or-no question. Without a person to answer it returns the error of attended.
func (p *process) confirm(ctx context.Context, question, what, otherwise string) (bool, error) {
	if err := p.attended(what, otherwise); err != nil {
		return false, err
	}
	return console.Ask(ctx, p.stdin, p.stderr, question, otherwise)
}

// unmatched returns a function that tells, after a run with a search, which forms have no result
// that matches. On a terminal it shows what people choose from in the columns that the search names,
// by the names in given. It is called before the run, which may write the codebook anew.
func (p *process) unmatched(ctx context.Context, def *definition.Definition, o pipelines.Options, given []extract.Criterion) func(*pipelines.Report) {
	where, offers := def.Extract.Search.Where, map[string]string{}
	forms, _ := pipelines.NamedForms(def, o)
	if len(where) == 0 || !console.IsTerminal(p.stderr) {
		forms = nil
	}
	for _, form := range forms {
		own, _ := def.For(form) // the run tells what is wrong
		for i, c := range where {
			if choices := offered(ctx, o.Job(own, form), c.Column); len(choices) > 0 {
				offers[form] += "; the choices of " + given[i].Column + " are " + plain.Few(choices, 12)
			}
		}
	}
	return func(r *pipelines.Report) {
		for _, f := range r.Forms {
			holds := slices.ContainsFunc(f.Outputs, func(out output.Report) bool { return out.Rows > 0 }) // of earlier runs
			if len(where) > 0 && f.Error == "" && f.Rows+f.Rejected == 0 && !holds {
				p.log.Tell(slog.LevelWarn, "warning: "+f.Form+": no result matches the search, so the output has no rows"+offers[f.Form], slog.String("form", f.Form))
			}
		}
	}
}

// offered returns what people choose from in a column, by the id of what fills it: the choices that
// the schema declares, else those in the codebook of an earlier run. There are none of columns with
// personal data. By API v2, which tells no types, a codebook may hold what people typed.
func offered(ctx context.Context, job *output.Job, id string) []string {
	item := schemas.Source{Kind: schemas.FromItem, ID: id}
	if s := job.Def.Schema; s != nil {
		at := slices.IndexFunc(s.Columns, func(c schemas.Column) bool {
			return c.From == item || c.From.Kind == schemas.FromMeta && c.From.ID == id
		})
		switch {
		case at >= 0 && s.Columns[at].PII.Kind != schemas.PIINone:
			return nil
		case at >= 0 && len(s.Columns[at].Choices) > 0:
			return s.Columns[at].Choices
		}
	}
	for _, out := range job.Def.Outputs {
		out.NoCodebook = false // an earlier run may have written one
		if found, err := job.Choices(ctx, out); err == nil && found[item] != nil && cmp.Or(job.Def.Source.API, definition.APIv1) == definition.APIv1 {
			return found[item]
		}
	}
	return nil
}

// failed returns the error of a command on several definitions (of), nil if none failed.
func failed(of int, failures []error) error {
	switch len(failures) {
	case 0:
		return nil
	case 1:
		return failures[0]
	}
	return &pipelines.FormsError{Forms: of, What: "definition", Errors: failures}
}
