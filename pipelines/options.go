package pipelines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/transform"
)

// Options is what a command is told besides its definition. Functions that take Options fill in
// the defaults by WithDefaults.
type Options struct {
	Tables output.Tables
	State  checkpoint.State // of the definition, where it is open already
	// From and To override the definition's range where they are not zero.
	From, To time.Time
	// Full replaces what an earlier run left, whatever its schema was.
	// Whole datasets are replaced: the range is widened to all their parts.
	Full bool
	// Forms restricts the work to these of the definition's forms; empty is all.
	Forms []string

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now; called from several goroutines
	Client ClientOptions    // for tests and the demo
	RunID  string           // "" makes one

	// The others are for Run, Head and Look.

	Progress func(Progress) // nil: nobody watches; called from several goroutines
	// Ended is called when a form has ended or will not begin, with its whole report.
	// nil: nobody is told; called from several goroutines.
	Ended  func(*FormReport)
	Stdout io.Writer // where the output "-" goes; nil discards
	Resume Resume    // what is taken over of a run that ended early
	// At is told when a run comes to a point: a step of a commit (load.Step) or
	// one of planned, piece, read, verified, snapshot, staged, prepared, codebook. Tests end
	// the process there. nil: nobody is told; called from several goroutines.
	At func(point string)
	// Wait waits for a time on the clock of the service. nil is a pause of that time; tests
	// whose service has a clock of its own set that. It is called from several goroutines.
	Wait func(ctx context.Context, d time.Duration) error

	forms    int              // how many forms are run, set by Run
	windows  reading.Slots    // of the windows of all forms, set by Run
	encoders reading.Slots    // of the objects that are encoded at once, set by Run
	batches  memory.Allocator // of the batches of all forms
}

// ClientOptions replaces parts of the client that a definition says nothing of.
type ClientOptions struct {
	Transport              http.RoundTripper
	BackoffMin, BackoffMax time.Duration
	Patience               time.Duration
	UserAgent              string
	// Waits is told when requests begin to wait for long for the budget per minute; nil
	// tells nobody.
	Waits func(until time.Time)
}

// waiting tells the log, and whoever watches, that requests wait for the budget.
func (o Options) waiting(perMinute int, until time.Time) {
	text := "waiting for the budget of 1 request a minute"
	if perMinute != 1 {
		text = fmt.Sprintf("waiting for the budget of %d requests a minute", perMinute)
	}
	o.Logger.LogAttrs(context.Background(), slog.LevelInfo, text, slog.Time("until", until.UTC().Truncate(time.Second)))
	if o.Client.Waits != nil {
		o.Client.Waits(until)
	}
}

// WithDefaults fills in what was left out.
func (o Options) WithDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
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
// so that ids sort by time and never meet.
func NewRunID(now time.Time) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b[:])
}

// Flags are what the options say of the interval.
func (o Options) Flags() reading.RangeFlags {
	return reading.RangeFlags{From: o.From, To: o.To, Full: o.Full}
}

// Job returns what the outputs of a form have in common, for callers that only look
// at them. It counts no requests and reports no drift and no points.
func (o Options) Job(def *definition.Definition, form string) *output.Job {
	return &output.Job{
		Def: def, Form: form, RunID: o.RunID, Full: o.Full, Tables: o.Tables, Now: o.Now, Log: o.Logger, At: func(string) {},
		Requests: func() load.Requests { return load.Requests{} }, Drift: func(string) {},
	}
}
