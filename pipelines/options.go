package pipelines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas/plain"
	"github.com/formetl/formetl/transform"
)

// Options is what a command is told besides its definition. Functions that take Options fill in
// the defaults by WithDefaults.
type Options struct {
	BuiltIn output.BuiltIn
	State   checkpoint.State // the definition's state, if it is open already
	// Range overrides the bounds of the definition's range that it has.
	Range definition.Range
	// Full replaces what an earlier run left, whatever its schema was.
	// Whole datasets are replaced: the range is widened to all their parts.
	Full bool
	// Forms restricts the work to these of the definition's forms; empty is all.
	Forms []string

	Logger *slog.Logger     // nil discards the log
	Now    func() time.Time // the clock, called from several goroutines; nil is time.Now
	Client ClientOptions    // parts of the client that tests and the demo replace
	RunID  string           // the run's id; "" makes a new one

	// The fields from here on are for Run, Head and Look.

	Progress func(Progress) // called with the progress, from several goroutines; may be nil
	// Ended is called with a form's whole report when the form has ended or will not begin.
	// It is called from several goroutines, and may be nil.
	Ended   func(*FormReport)
	Stdout  io.Writer           // where the output "-" goes; nil discards it
	Resume  Resume              // what is taken over of a run that ended early
	Guarded func(column string) // see output.Job.Guarded
	// At is called when a run comes to a point: a step of a commit (load.Step), or one of
	// planned, piece, read, verified, snapshot, staged, prepared, load, loaded, codebook. Tests
	// end the process there. It is called from several goroutines, and may be nil.
	At func(point string)
	// Wait waits for a time on the clock of the service. nil is a pause of that time. Tests
	// whose service has a clock of its own set Wait. It is called from several goroutines.
	Wait func(ctx context.Context, d time.Duration) error

	began    time.Time        // the instant that Range goes by, set by WithDefaults
	forms    int              // how many forms are run, set by Run
	windows  reading.Slots    // limits the windows read at once over all forms, set by Run
	encoders reading.Slots    // limits the objects that are encoded at once, set by Run
	batches  memory.Allocator // allocates the record batches of all forms
}

// ClientOptions sets parts of the client that a definition says nothing of.
type ClientOptions struct {
	Transport              http.RoundTripper
	BackoffMin, BackoffMax time.Duration
	Patience               time.Duration
	UserAgent              string
	Contact                func(transport.Contact) // see transport.Config
	// Waits is called when requests begin to wait for long for the budget per minute. It may
	// be nil.
	Waits func(until time.Time)
}

// waiting logs that requests wait for the budget per minute, and calls Client.Waits.
func (o Options) waiting(perMinute int, until time.Time) {
	text := "waiting for the budget of " + plain.Plural(perMinute, "request") + " per minute"
	o.Logger.LogAttrs(context.Background(), slog.LevelInfo, text, slog.Time("until", until.UTC().Truncate(time.Second)))
	if o.Client.Waits != nil {
		o.Client.Waits(until)
	}
}

// WithDefaults returns the options with defaults for the fields that are not set.
func (o Options) WithDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.began.IsZero() {
		o.began = o.Now()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.RunID == "" {
		o.RunID = NewRunID(o.Now())
	}
	if o.At == nil {
		o.At = func(string) {}
	}
	if o.Wait == nil {
		o.Wait = load.Pause
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Ended == nil {
		o.Ended = func(*FormReport) {}
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.batches == nil {
		o.batches = &transform.Pool{}
	}
	return o
}

// NewRunID makes a run's id: the time of its start in UTC and a random part,
// so that ids sort by time and no two runs have the same.
func NewRunID(now time.Time) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

// Flags returns the options that decide which interval a run of a definition reads.
func (o Options) Flags(def *definition.Definition) reading.RangeFlags {
	at := o.began
	if at.IsZero() {
		at = o.Now()
	}
	w := o.Range.In(def.Source.Zone, at)
	return reading.RangeFlags{From: w.From, To: w.To, Full: o.Full}
}

// Job returns a Job for the outputs of a form, for callers that only look at the outputs. It
// counts no requests and reports no drift and no points.
func (o Options) Job(def *definition.Definition, form string) *output.Job {
	return &output.Job{
		Def: def, Form: form, RunID: o.RunID, Full: o.Full, BuiltIn: o.BuiltIn, Now: o.Now, Log: o.Logger, At: func(string) {},
		Requests: func() load.Requests { return load.Requests{} }, Drift: func(string) {},
	}
}
