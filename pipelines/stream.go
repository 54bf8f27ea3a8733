package pipelines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/pipelines/stream"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Stream reads one form in the order of ids, one page after the other, and writes rows to
// the definition's outputs as they come. The outputs are files and standard output. limit
// is the most results, or 0 for all. Without a limit the rows are compared with the
// service's counts before and after, and the error is an *UnverifiedError if they differ.
func Stream(ctx context.Context, def *definition.Definition, o Options, limit int64) (*Report, error) {
	o = o.withDefaults()
	report := &Report{Pipeline: def.Name, RunID: o.RunID, StartedAt: o.Now().UTC(), Definition: def.File, Forms: []*FormReport{}}
	client, err := account.NewClient(ctx, def, o.Options)
	if err != nil {
		return report, err
	}
	defer client.Close()
	f := &FormReport{Form: def.Forms[0], StartedAt: report.StartedAt, Timezone: def.Source.Zone.String(), Outputs: []output.Report{}}
	report.Forms = append(report.Forms, f)
	err = streamForm(ctx, def, o, client, limit, f)
	if err != nil {
		f.Error, f.Err = err.Error(), err
		err = formFailed(f.Form, err)
	}
	sent := client.Requests()
	report.Requests, report.RequestOutcomes = RunRequests{requestsOf(sent), sent.Other}, client.Outcomes()
	f.EndedAt, f.Requests = o.Now().UTC(), report.Requests.Requests
	report.EndedAt = f.EndedAt
	return report, err
}

// UnverifiedError reports rows that do not agree with the service's counts.
type UnverifiedError struct {
	Read   int64
	Counts []int64 // before and after the reading
}

// Error names the counts and says what to do.
func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("%d results were written, and the service counts %d before and %d after: results changed meanwhile, or its counts do not agree with its pages: run again; if it comes again, `formetl doctor` shows what the service honours", e.Read, e.Counts[0], e.Counts[1])
}

func streamForm(ctx context.Context, def *definition.Definition, o Options, client extract.Client, limit int64, f *FormReport) (err error) {
	iv, err := interval.Ask(def, o.Flags(), o.Now())
	if err != nil {
		return err
	}
	f.Range = load.Span(iv.Read.From, iv.Read.To)
	set := output.New(&output.Job{
		Def: def, Form: f.Form, RunID: o.RunID, Tables: o.Tables, Stdout: o.Stdout, Now: o.Now, Log: o.Logger, At: o.At,
		API: written(client), Encoders: reading.NewSlots(runtime.GOMAXPROCS(0)), Requests: func() load.Requests { return requestsOf(client.Requests()) }, Drift: func(string) {},
	})
	defer func() { err = errors.Join(err, set.Close(context.WithoutCancel(ctx))) }()
	if err := set.Open(ctx); err != nil {
		return err
	}
	query := reading.Query(def.Extract)
	query.Window = iv.Given
	verified := newVerification(client, f.Form, iv.Given, reasonNotVerified(def, limit))
	if err := verified.count(ctx); err != nil {
		return err
	}
	if what := verified.unproven(); what != "" && def.Extract.Proof {
		return &reconcile.UnprovenError{What: what}
	}
	w := &reading.Window{Planned: extract.Planned{Window: iv.Asked, Count: verified.expected(0)}, Done: true}
	began := o.Now().UTC()
	s, err := stream.Open(ctx, client, stream.Query{
		Form: f.Form, Results: query, Limit: limit, Count: verified.expected(0), Schema: def.Schema, Labels: def.Labels, Some: def.Outputs[0].Select != nil,
		Options: transform.Options{Zone: def.Source.Zone, Labels: def.Labels, Mem: o.batches},
	})
	if err != nil {
		return err
	}
	defer s.Close()
	preview := reconcile.Streamed(iv, w, s.Schema, s.Labels, load.Verified{})
	err = output.Stream(ctx, set, preview, w, func(emit func(arrow.RecordBatch) error) error {
		return s.Each(ctx, func(b arrow.RecordBatch) error {
			o.Progress(Progress{Form: f.Form, Rows: s.Read, Expected: verified.expected(limit), Requests: client.Requests().Results})
			return emit(b)
		})
	})
	if err != nil {
		return err
	}
	if err := verified.count(ctx); err != nil {
		return err
	}
	w.Reading = reading.Reading{IDs: s.IDs, Stats: s.Stats, Rejects: s.Rejects, ReadAt: began}
	v, err := verified.result(s.Read, s.Early)
	f.Verified, f.Windows, f.Rows, f.Rejected = &v, 1, s.Stats.Rows, s.Stats.Rejected
	f.Rejects, f.Nulled = reading.Faults(s.Stats.Rejects), reading.Faults(s.Stats.Nulled)
	f.Drift = append(f.Drift, unreadNotes(s.Stats)...)
	if err != nil {
		return err
	}
	defer func() { f.Outputs = set.Reports() }()
	return set.Commit(ctx, reconcile.Streamed(iv, w, s.Schema, s.Labels, v), func(context.Context) {})
}

// Reasons why a stream is not compared with counts.
const (
	LimitGiven = "--limit was given" // only the latest results were read
	turnedOff  = "turned off"
)

// reasonNotVerified says why a stream is not compared with counts, or "".
func reasonNotVerified(def *definition.Definition, limit int64) string {
	switch {
	case limit > 0:
		return LimitGiven
	case len(def.Extract.Search.Where) > 0 || def.Extract.View != "":
		return "not applicable: counts know neither searches nor views"
	case !def.Extract.Verify:
		return turnedOff
	}
	return ""
}

// verification compares what a stream gave with counts from before and after it.
type verification struct {
	client extract.Client
	form   string
	window extract.Window
	off    string // why nothing is counted; "" if it is
	method string // of load.Verified
	counts []int64
}

// newVerification returns one that compares nothing if off says why.
func newVerification(client extract.Client, form string, window extract.Window, off string) *verification {
	v := &verification{client: client, form: form, window: window, off: off}
	if off == "" {
		v.method = reading.Form{Client: client}.CountMethod()
	}
	return v
}

func (v *verification) count(ctx context.Context) error {
	if v.off != "" {
		return nil
	}
	n, err := v.client.Count(ctx, v.form, extract.CountQuery{Window: v.window})
	if errors.Is(err, extract.ErrNoCount) {
		v.off, v.method = tellsNoCounts, load.MethodRead
		return nil
	}
	v.counts = append(v.counts, n)
	return err
}

// unproven says what nobody can prove of the rows, "" if it is proven.
func (v *verification) unproven() string {
	switch v.off {
	case turnedOff:
		return "no counts are compared, as was asked for"
	case tellsNoCounts:
		return tellsNoCounts
	}
	return ""
}

func (v *verification) expected(limit int64) int64 {
	switch {
	case limit > 0:
		return limit
	case len(v.counts) > 0:
		return v.counts[0]
	}
	return extract.Unknown
}

// result compares the rows with the counts, which also hold the early ones.
func (v *verification) result(read, early int64) (load.Verified, error) {
	if v.off != "" {
		return load.Verified{Extracted: read, Reason: v.off, Method: v.method, Unproven: v.unproven()}, nil
	}
	for i := range v.counts {
		v.counts[i] -= early
	}
	last := v.counts[len(v.counts)-1]
	is := load.Verified{Counted: last, Extracted: read, Match: last == read, Method: v.method}
	if !reading.Plausible(v.counts, read) {
		return is, &UnverifiedError{Read: read, Counts: v.counts}
	}
	return is, nil
}

// Look writes some results of a form to w: the first ones by id, or the latest, these
// first. It costs a request for each hundred results.
func Look(ctx context.Context, def *definition.Definition, o Options, q stream.Query, format load.Format, w io.Writer) (err error) {
	o = o.withDefaults()
	iv, err := interval.Ask(def, o.Flags(), o.Now())
	if err != nil {
		return err
	}
	client, err := account.NewClient(ctx, def, o.Options)
	if err != nil {
		return err
	}
	defer client.Close()
	q.Results = reading.Query(def.Extract)
	q.Results.Window, q.Schema, q.Labels = iv.Given, def.Schema, def.Labels
	q.Options = transform.Options{Zone: def.Source.Zone, Labels: def.Labels, Mem: o.batches}
	s, err := stream.Open(ctx, client, q)
	if err != nil {
		return formFailed(q.Form, err)
	}
	defer s.Close()
	schema := schemas.ArrowSchema(reconcile.Columns(s.Schema, s.Labels, nil))
	if err := load.CheckSchema(schema); err != nil {
		return err
	}
	encoder, err := format.New(w, schema, load.EncodeOptions{Zone: def.Source.Zone})
	if err != nil {
		return err
	}
	err = s.Each(ctx, func(b arrow.RecordBatch) error {
		whole, err := transform.Conform(b, schema, nil)
		if err != nil {
			return err
		}
		defer whole.Release()
		return encoder.Write(whole)
	})
	if err != nil {
		return formFailed(q.Form, err)
	}
	return encoder.Close()
}
