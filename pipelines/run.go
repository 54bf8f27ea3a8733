package pipelines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
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
	Now      func() time.Time // nil is time.Now; called from several goroutines
	Client   ClientOptions    // for tests and the demo
	RunID    string           // "" makes one
	Resume   Resume           // what is taken over of a run that ended early
	// At is told when a run comes to a point: a step of a commit (load.Step) or
	// one of planned, journal, read, staged, prepared, recorded, verified, codebook. Tests end
	// the process there. nil: nobody is told; called from several goroutines.
	At func(point string)

	places places // of the run's windows, set by Run
}

// The points of a run besides the steps of its commits.
const (
	pointPlanned  = "planned"  // the windows are known
	pointJournal  = "journal"  // a dataset's journal is about to be opened
	pointRead     = "read"     // a window is read, and its record in the spool
	pointStaged   = "staged"   // an object is written, and not prepared
	pointPrepared = "prepared" // a part is prepared, and not recorded
	pointRecorded = "recorded" // a part is in the journal
	pointVerified = "verified" // what was read agrees with the counts
	pointCodebook = "codebook" // the outputs are committed, and their codebooks are about to be written
)

// ClientOptions replaces parts of the client that a definition says nothing of.
type ClientOptions struct {
	Transport              http.RoundTripper
	BackoffMin, BackoffMax time.Duration
	Patience               time.Duration
	UserAgent              string
}

// Progress is how far a form's run has come.
type Progress struct {
	Form     string
	Rows     int64 // results read so far
	Expected int64 // results counted, or extract.Unknown
	Requests int64
	Done     bool // written
	Failed   bool // nothing more comes of it; the numbers are not given
}

// Run runs a definition, its forms side by side. A form that fails does not
// stop the others, unless each would fail of the same cause: then no further
// one is begun. The report tells what was done, also when the error is not nil,
// its forms in the order of the definition and of Get Forms; the error is a
// *FormsError where a form failed.
func Run(ctx context.Context, def *Definition, o Options) (*Report, error) {
	o = o.withDefaults()
	o.places = newPlaces(def.Source.Requests.Concurrency)
	report := &Report{Pipeline: def.Name, RunID: o.RunID, StartedAt: o.Now().UTC(), Definition: def.File, Forms: []*FormReport{}}
	defer func() { report.EndedAt = o.Now().UTC() }()
	client, err := newClient(def, o)
	if err != nil {
		return report, err
	}
	defer client.Close()
	defer func() {
		report.Requests, report.RequestOutcomes = requestsOf(client.Requests()), client.Outcomes()
	}()
	forms, err := formsOf(ctx, client, def, o)
	if err != nil {
		return report, err
	}
	client.Reads(len(forms))
	runs := &formRuns{def: def, o: o, client: client, forms: forms, clash: collisions(def, forms, o.Tables.Formats, o.RunID, foldsCase())}
	runs.run(ctx)
	return report, runs.result(report)
}

// runForm runs one form. Where that went on with a run that had ended early,
// what its own range holds beyond that one's is done after it.
func runForm(ctx context.Context, def *Definition, o Options, client extract.Client, form string) ([]*FormReport, error) {
	f := newFormRun(def, o, client, form)
	err := f.run(ctx)
	if f.leavesDatesOut(err) {
		f = f.withoutDates(ctx)
		err = f.run(ctx)
	}
	reports := []*FormReport{f.report}
	if f.frozen == nil || err != nil && !onlyDamaged(err) {
		return reports, err
	}
	rest, broken := f.remainder()
	if broken != nil {
		f.report.Error, f.report.Err = broken.Error(), broken
		return reports, broken
	}
	for _, next := range rest {
		f.report.takeBackDamage(err)
		f, err = next, next.run(ctx)
		reports = append(reports, next.report)
		if err != nil && !onlyDamaged(err) {
			break
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

func newClient(def *Definition, o Options) (extract.Client, error) {
	s := def.Source
	return v1.NewClient(v1.Config{
		BaseURL: s.BaseURL, Account: s.Account, AllowHTTP: s.AllowHTTP, Config: transport.Config{
			Key:     s.Key,
			Timeout: s.Requests.Timeout, Retries: s.Requests.Retries, Concurrency: s.Requests.Concurrency,
			Budget:     sharedBudget(def, o.Now),
			BackoffMin: o.Client.BackoffMin, BackoffMax: o.Client.BackoffMax, Patience: o.Client.Patience,
			Logger: o.Logger, Transport: o.Client.Transport, UserAgent: o.Client.UserAgent,
		},
	})
}

func pathValues(def *Definition, form, runID string) PathValues {
	return PathValues{Form: form, Pipeline: def.Name, Account: def.Source.Account, RunID: runID}
}

func requestsOf(r transport.Requests) load.Requests {
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
