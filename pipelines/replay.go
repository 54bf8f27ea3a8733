package pipelines

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// FormReplay says what must be read again of one form because of the dead letters at a
// definition's outputs. Windows that hold rejected results are read again by the
// present schema, and the new rows replace those at the outputs. So no result is
// there twice. Only the windows and the number of results are taken from the dead letters.
type FormReplay struct {
	Form    string
	Results int // rejected results, each counted once
	// Ranges are the ranges to read again, in order of time. There are none if Whole is set.
	Ranges []load.Range
	// Whole tells that the definition's whole range is read again, because a single file
	// holds all of it, or because a result without a date was rejected. Full tells that the run
	// replaces all that the outputs hold.
	Whole, Full bool
}

// replayGap is how far apart two windows may lie to be read in one run. A run
// costs two counts, and a day between two windows seldom costs more.
const replayGap = 24 * time.Hour

// FindRejects reads the dead letters at the definition's outputs. It takes no lease and
// changes nothing, and asks the service for the forms of globs alone. Forms without dead
// letters are left out.
func FindRejects(ctx context.Context, def *definition.Definition, o Options) (replays []FormReplay, err error) {
	o = o.WithDefaults()
	forms, err := ListForms(ctx, def, o)
	if err != nil {
		return nil, err
	}
	for _, form := range forms {
		def, err := def.For(form)
		if err != nil {
			return nil, err
		}
		letters := output.Letters{Results: map[int64]bool{}}
		for _, out := range def.Outputs {
			if out.Path == definition.StdoutPath {
				continue
			}
			if err := o.Job(def, form).DeadLetters(ctx, out, &letters); err != nil {
				return nil, err
			}
		}
		if len(letters.Results) > 0 {
			replays = append(replays, replayOf(def, form, letters))
		}
	}
	return replays, nil
}

// replayOf returns what must be read again of a form that has these dead letters.
func replayOf(def *definition.Definition, form string, letters output.Letters) FormReplay {
	f := FormReplay{Form: form, Results: len(letters.Results)}
	// A run of a bounded range looks for no results without a date.
	undated := letters.Undated && def.Extract.From.IsZero() && def.Extract.To.IsZero()
	f.Whole = def.HasFiles() || undated
	f.Full = undated && def.Extract.Incremental
	if f.Whole {
		return f
	}
	for _, w := range gathered(letters.Windows, replayGap) {
		if w.From.IsZero() && def.Extract.Incremental && def.Extract.From.IsZero() {
			w.From = extract.Epoch // a run that is given no start would continue from the watermark
		}
		f.Ranges = append(f.Ranges, load.Span(w.From, w.To))
	}
	return f
}

// gathered returns the spans of the windows in order of time. It joins windows that lie no
// further than gap from each other.
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

// Options returns the options of the runs that read the form again: one run for each range, or
// one for the whole range.
func (f FormReplay) Options(o Options) []Options {
	o.Forms, o.Range, o.Full = []string{f.Form}, definition.Range{}, f.Full
	if f.Whole {
		return []Options{o}
	}
	runs := make([]Options, len(f.Ranges))
	for i, r := range f.Ranges {
		runs[i] = o
		runs[i].Range = definition.Range{From: definition.At(r.From.Time), To: definition.At(r.To.Time)}
	}
	return runs
}
