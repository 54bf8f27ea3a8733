package pipelines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// Options is what a run is told besides its definition.
type Options struct {
	Tables Tables
	// From and To override the definition's range where they are not zero.
	From, To time.Time
	// Full replaces what an earlier run left, whatever its schema was.
	// Whole datasets are replaced: the range is widened to all their parts.
	Full bool
	// Forms restricts the run to these of the definition's forms; empty is all.
	Forms []string

	Logger   *slog.Logger     // nil discards
	Progress func(Progress)   // nil: nobody watches; called from several goroutines
	Stdout   io.Writer        // where the output "-" goes; nil discards
	Now      func() time.Time // nil is time.Now
	Client   ClientOptions    // for tests and the demo
	RunID    string           // "" makes one
	// At is told when a run comes to a point: a step of a commit (load.Step) or
	// one of planned, journal, staged, prepared, recorded, verified. Tests end
	// the process there. nil: nobody is told; called from several goroutines.
	At func(point string)
}

// The points of a run besides the steps of its commits.
const (
	pointPlanned  = "planned"  // the windows are known
	pointJournal  = "journal"  // a dataset's journal is about to be opened
	pointStaged   = "staged"   // an object is written, and not prepared
	pointPrepared = "prepared" // a part is prepared, and not recorded
	pointRecorded = "recorded" // a part is in the journal
	pointVerified = "verified" // what was read agrees with the counts
)

// ClientOptions replaces parts of the client that a definition says nothing of.
type ClientOptions struct {
	Transport              http.RoundTripper
	BackoffMin, BackoffMax time.Duration
	UserAgent              string
}

// Progress is how far a form's run has come.
type Progress struct {
	Form     string
	Rows     int64 // results read so far
	Expected int64 // results counted, or extract.Unknown
	Requests int64
	Done     bool
}

// Run runs a definition, form after form. A form that fails does not stop the
// others. The report tells what was done, also when the error is not nil; the
// error is a *FormsError where a form failed.
func Run(ctx context.Context, def *Definition, o Options) (*Report, error) {
	o = o.withDefaults()
	report := &Report{Pipeline: def.Name, RunID: o.RunID, StartedAt: o.Now().UTC(), Definition: def.File}
	defer func() { report.EndedAt = o.Now().UTC() }()
	if err := def.Supported(); err != nil {
		return report, err
	}
	client, err := newClient(def, o)
	if err != nil {
		return report, err
	}
	defer client.Close()
	defer func() { report.Requests = requestsOf(client.Requests()) }()
	forms, err := formsOf(ctx, client, def, o)
	if err != nil {
		return report, err
	}
	failed := &FormsError{Forms: len(forms)}
	done := 0
	for _, form := range forms {
		if ctx.Err() != nil {
			break
		}
		done++
		reports, err := runForm(ctx, def, o, client, form)
		report.Forms = append(report.Forms, reports...)
		if err != nil {
			failed.Errors = append(failed.Errors, fmt.Errorf("form %s: %w", form, err))
		}
	}
	switch {
	case len(failed.Errors) > 0:
		return report, failed
	case done < len(forms): // stopped between two forms
		return report, context.Cause(ctx)
	}
	return report, nil
}

// runForm runs one form. Where that went on with a run that had ended early,
// what its own range holds beyond that one's is done after it.
func runForm(ctx context.Context, def *Definition, o Options, client *extract.Client, form string) ([]*FormReport, error) {
	f := newFormRun(def, o, client, form)
	err := f.run(ctx)
	reports := []*FormReport{f.report}
	switch {
	case errors.Is(err, errMovedOn): // it went on with a run that followed on another
		again := f.whole()
		err = again.run(ctx)
		return []*FormReport{again.report}, err
	case err != nil || f.frozen == nil:
		return reports, err
	}
	rest, err := f.remainder()
	for i := 0; i < len(rest) && err == nil; i++ {
		if i > 0 && !rest[i].follow(rest[i-1]) {
			rest = append(rest[:i], f.whole())
		}
		err = rest[i].run(ctx)
		reports = append(reports, rest[i].report)
		if errors.Is(err, errMovedOn) {
			o.Logger.LogAttrs(ctx, slog.LevelInfo, "the whole range is read again", slog.String("form", form), slog.String("reason", err.Error()))
			again := f.whole()
			err = again.run(ctx)
			return append(reports[:len(reports)-1], again.report), err
		}
	}
	return reports, err
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.RunID == "" {
		o.RunID = NewRunID(o.Now())
	}
	return o
}

// NewRunID makes a run's id: the time of its start in UTC and a random part,
// so that ids sort by time and never meet.
func NewRunID(now time.Time) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

func newClient(def *Definition, o Options) (*extract.Client, error) {
	s := def.Source
	return extract.NewClient(extract.Config{
		BaseURL: s.BaseURL, Account: s.Account, Key: s.Key, AllowHTTP: s.AllowHTTP,
		Timeout: s.Requests.Timeout, Retries: s.Requests.Retries, Concurrency: s.Requests.Concurrency,
		Budget:     sharedBudget(def),
		BackoffMin: o.Client.BackoffMin, BackoffMax: o.Client.BackoffMax,
		Logger: o.Logger, Transport: o.Client.Transport, UserAgent: o.Client.UserAgent,
	})
}

// formsOf resolves the definition's forms: names as they are, globs by Get Forms.
func formsOf(ctx context.Context, client *extract.Client, def *Definition, o Options) ([]string, error) {
	names := def.Forms
	if def.ListsForms() {
		listed, err := client.Forms(ctx)
		if err != nil {
			return nil, err
		}
		names = nil
		for _, f := range listed {
			names = append(names, f.Directory)
		}
		for _, f := range def.Forms {
			if !IsGlob(f) {
				names = append(names, f)
			}
		}
	}
	chosen := map[string]bool{}
	for _, f := range o.Forms {
		chosen[f] = true
	}
	var forms []string
	seen := map[string]bool{}
	for _, f := range names {
		if seen[f] || !def.WantsForm(f) || len(chosen) > 0 && !chosen[f] {
			continue
		}
		seen[f] = true
		forms = append(forms, f)
	}
	if len(forms) == 0 {
		return nil, &NoFormsError{Patterns: def.Forms, Chosen: o.Forms}
	}
	for _, f := range forms {
		// A form that is named and cannot be a path is an error before any work;
		// one that the service listed fails by itself.
		if slices.Contains(def.Forms, f) {
			if err := checkPaths(def, f, o.RunID); err != nil {
				return nil, err
			}
		}
	}
	return forms, nil
}

// checkPaths tells whether the outputs' paths can be made for a form.
func checkPaths(def *Definition, form, runID string) error {
	for _, out := range def.Outputs {
		if _, err := ExpandPath(out.Path, pathValues(def, form, runID)); err != nil {
			return err
		}
	}
	return nil
}

func pathValues(def *Definition, form, runID string) PathValues {
	return PathValues{Form: form, Pipeline: def.Name, Account: def.Source.Account, RunID: runID}
}

func requestsOf(r extract.Requests) load.Requests {
	return load.Requests{Results: r.Results, Count: r.Count, Retries: r.Retries}
}

// wallNow is the wall clock of the account's zone, with UTC as its vessel.
func wallNow(now time.Time, zone *time.Location) time.Time {
	t := now.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// askedOf is the span that was asked for; zero where it was left out.
func askedOf(def *Definition, o Options) extract.Window {
	w := extract.Window{From: def.Extract.From, To: def.Extract.To}
	if !o.From.IsZero() {
		w.From = o.From
	}
	if !o.To.IsZero() {
		w.To = o.To
	}
	return w
}

// rangeOf is the span that a run reads: as it was asked for, up to now less
// the settling time where no end was.
func rangeOf(def *Definition, o Options) (extract.Window, error) {
	w := askedOf(def, o)
	if w.To.IsZero() {
		w.To = wallNow(o.Now(), def.Source.Zone).Add(-def.Extract.Settle)
	}
	if !w.From.IsZero() && !w.From.Before(w.To) {
		return w, &RangeError{Window: w}
	}
	return w, nil
}
