package pipelines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/budget"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
)

// Options is what a run is told besides its definition.
type Options struct {
	Tables output.Tables
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
	// one of planned, piece, read, verified, snapshot, staged, prepared, codebook. Tests end
	// the process there. nil: nobody is told; called from several goroutines.
	At func(point string)

	windows  reading.Slots // of the windows of all forms, set by Run
	encoders reading.Slots // of the objects that are encoded at once, set by Run
}

// pointPlanned is told to Options.At once the windows are known. The other points
// are those of packages reading, reconcile and output.
const pointPlanned = "planned"

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
func Run(ctx context.Context, def *definition.Definition, o Options) (*Report, error) {
	o = o.withDefaults()
	o.windows, o.encoders = reading.NewSlots(def.Source.Requests.Concurrency), reading.NewSlots(runtime.GOMAXPROCS(0))
	report := &Report{Pipeline: def.Name, RunID: o.RunID, StartedAt: o.Now().UTC(), Definition: def.File, Forms: []*FormReport{}}
	defer func() { report.EndedAt = o.Now().UTC() }()
	client, err := newClient(def, o)
	if err != nil {
		return report, err
	}
	defer client.Close()
	if n := checkpoint.DiscardSpools(def.State, false); n > 0 {
		o.Logger.LogAttrs(ctx, slog.LevelWarn, "what runs of an older version had read is discarded, and read again", slog.Int("runs", n))
	}
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

func newClient(def *definition.Definition, o Options) (extract.Client, error) {
	s := def.Source
	return v1.NewClient(v1.Config{
		BaseURL: s.BaseURL, Account: s.Account, AllowHTTP: s.AllowHTTP, Config: transport.Config{
			Key:     s.Key,
			Timeout: s.Requests.Timeout, Retries: s.Requests.Retries, Concurrency: s.Requests.Concurrency,
			Budget:     budget.Shared(def, o.Now),
			BackoffMin: o.Client.BackoffMin, BackoffMax: o.Client.BackoffMax, Patience: o.Client.Patience,
			Logger: o.Logger, Transport: o.Client.Transport, UserAgent: o.Client.UserAgent,
		},
	})
}

func requestsOf(r transport.Requests) load.Requests {
	return load.Requests{Results: r.Results, Count: r.Count, Retries: r.Retries}
}

// flags are what is said of the interval.
func (o Options) flags() interval.Flags {
	return interval.Flags{From: o.From, To: o.To, Full: o.Full}
}

// at tells whoever watches that the run has come to a point.
func (o Options) at(point string) {
	if o.At != nil {
		o.At(point)
	}
}

// job is what the outputs of a form have in common, for those who only look at
// them.
func (o Options) job(def *definition.Definition, form string) *output.Job {
	return &output.Job{
		Def: def, Form: form, RunID: o.RunID, Full: o.Full, Tables: o.Tables, Now: o.Now, Log: o.Logger, At: o.at,
		Requests: func() load.Requests { return load.Requests{} }, Drift: func(string) {}, // there is no report of a form
	}
}
