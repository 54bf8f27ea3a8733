package pipelines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// Replay says what must be read again because of the dead letters at a
// definition's outputs. Windows that hold rejected results are read again by the
// present schema, and their rows replace those at the outputs. So no result is
// there twice. Nothing but windows is taken from the dead letters.
type Replay struct {
	Forms []FormReplay
}

// FormReplay says what must be read again of one form.
type FormReplay struct {
	Form    string
	Objects int // how many objects hold dead letters
	Results int // rejected results, each counted once
	// Ranges are read again, in order of time; there are none with Whole.
	Ranges []load.Range
	// Whole tells that the definition's whole range is read again: a single file
	// holds it, or a result without a date was rejected. Full tells that the run
	// replaces all that the outputs hold.
	Whole, Full bool

	letters []output.Letters
}

// replayGap is how far apart two windows may lie to be read in one run. A run
// costs two counts, and a day between two windows seldom costs more.
const replayGap = 24 * time.Hour

// FindRejects reads the dead letters at the definition's outputs. It takes no lease and
// changes nothing, and asks the service for the forms of globs alone. Forms without dead
// letters are left out.
func FindRejects(ctx context.Context, def *definition.Definition, o account.Options) (*Replay, error) {
	o = o.WithDefaults()
	forms, err := account.ListForms(ctx, def, o)
	if err != nil {
		return nil, err
	}
	r := &Replay{}
	for _, form := range forms {
		f := FormReplay{Form: form}
		for _, out := range def.Outputs {
			if out.Path == definition.StdoutPath {
				continue
			}
			if err := f.look(ctx, def, o, out); err != nil {
				return nil, err
			}
		}
		if f.Objects > 0 {
			f.decide(def)
			r.Forms = append(r.Forms, f)
		}
	}
	return r, nil
}

// look reads the dead letters of one output.
func (f *FormReplay) look(ctx context.Context, def *definition.Definition, o account.Options, out definition.Output) error {
	at, err := output.Locate(def, out, f.Form, o.RunID)
	if err != nil {
		return err
	}
	if out.Database != nil {
		return f.lookInTable(ctx, o, out, at.Path)
	}
	dest, err := o.Tables.Open(ctx, at.Root, out)
	if err != nil {
		return err
	}
	names := []string{load.FileRejectsName(at.Scope)}
	if out.Dataset() {
		objects, err := dest.List(ctx, load.RejectsFolder+"/")
		if err != nil {
			return fmt.Errorf("%s: %w", at.Path, err)
		}
		names = load.NamesOf(objects)
	}
	for _, name := range names {
		l, err := output.ReadLetters(ctx, dest, name)
		if err != nil {
			return fmt.Errorf("%s: dead letters %s: %w", at.Path, name, err)
		}
		if len(l.Results) > 0 {
			f.letters = append(f.letters, l)
		}
	}
	f.Objects = len(f.letters)
	return nil
}

// lookInTable reads the dead letters of a table.
func (f *FormReplay) lookInTable(ctx context.Context, o account.Options, out definition.Output, path string) error {
	table, err := o.Tables.OpenTable(path, out.Database)
	if err != nil {
		return err
	}
	m, _, err := table.Last(ctx)
	if err != nil || m == nil {
		return err
	}
	for _, p := range m.Parts {
		if p.Rejected == 0 {
			continue
		}
		data, err := table.Letters(ctx, p)
		if err != nil {
			return err
		}
		l, err := output.ParseLetters(p.Path, data)
		if err != nil {
			return fmt.Errorf("%s: dead letters of %s: %w", path, p.Path, err)
		}
		f.letters = append(f.letters, l)
	}
	f.Objects = len(f.letters)
	return nil
}

// decide decides what is read again.
func (f *FormReplay) decide(def *definition.Definition) {
	results := map[int64]bool{}
	var windows []extract.Window
	undated := false
	for _, l := range f.letters {
		for id := range l.Results {
			results[id] = true
		}
		windows = append(windows, l.Windows...)
		undated = undated || l.Undated
	}
	f.Results = len(results)
	// A run of a bounded range looks for no results without a date.
	undated = undated && def.Extract.From.IsZero() && def.Extract.To.IsZero()
	f.Whole = def.HasFiles() || undated
	f.Full = undated && def.Extract.Incremental
	if f.Whole {
		return
	}
	for _, w := range gathered(windows, replayGap) {
		if w.From.IsZero() && def.Extract.Incremental && def.Extract.From.IsZero() {
			w.From = extract.Epoch // a run without a beginning goes on from the watermark
		}
		f.Ranges = append(f.Ranges, load.Span(w.From, w.To))
	}
}

// gathered joins windows that lie no further than gap from each other, in order
// of time.
func gathered(windows []extract.Window, gap time.Duration) []extract.Window {
	slices.SortFunc(windows, func(a, b extract.Window) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	var spans []extract.Window
	for _, w := range windows {
		last := len(spans) - 1
		if last < 0 || !spans[last].To.IsZero() && w.From.After(spans[last].To.Add(gap)) {
			spans = append(spans, w)
			continue
		}
		if s := &spans[last]; !s.To.IsZero() && (w.To.IsZero() || w.To.After(s.To)) {
			s.To = w.To
		}
	}
	return spans
}

// Options gives the options of the form's runs: one run for each range, or one for the whole.
func (f FormReplay) Options(o Options) []Options {
	o.Forms, o.From, o.To, o.Full = []string{f.Form}, time.Time{}, time.Time{}, f.Full
	if f.Whole {
		return []Options{o}
	}
	runs := make([]Options, len(f.Ranges))
	for i, r := range f.Ranges {
		runs[i] = o
		runs[i].From, runs[i].To = r.From.Time, r.To.Time
	}
	return runs
}
