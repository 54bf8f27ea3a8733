package pipelines

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/pipelines/stream"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// LimitGiven is why the first results of a form are not verified.
const LimitGiven = "--limit was given"

// Head writes the first results of one form, by id, to the definition's outputs. It holds
// them in memory, keeps nothing for a later run, and proves nothing. limit is the most
// results.
func Head(ctx context.Context, def *definition.Definition, o Options, limit int64) (*Report, error) {
	o = o.withDefaults()
	report := &Report{Pipeline: def.Name, RunID: o.RunID, StartedAt: o.Now().UTC(), Definition: def.File, Forms: []*FormReport{}}
	client, err := account.NewClient(ctx, def, o.Options)
	if err != nil {
		return report, err
	}
	defer client.Close()
	f := &FormReport{Form: def.Forms[0], StartedAt: report.StartedAt, Timezone: def.Source.Zone.String(), Outputs: []output.Report{}}
	report.Forms = append(report.Forms, f)
	if err = headOf(ctx, def, o, client, limit, f); err != nil {
		f.Error, f.Err = err.Error(), err
		err = formFailed(f.Form, err)
	}
	sent := client.Requests()
	report.Requests, report.RequestOutcomes = RunRequests{requestsOf(sent), sent.Other}, client.Outcomes()
	f.EndedAt, f.Requests = o.Now().UTC(), report.Requests.Requests
	report.EndedAt = f.EndedAt
	return report, err
}

func headOf(ctx context.Context, def *definition.Definition, o Options, client extract.Client, limit int64, f *FormReport) (err error) {
	iv, err := reading.NewInterval(def, o.Flags(), o.Now())
	if err != nil {
		return err
	}
	f.Range = load.Span(iv.Read.From, iv.Read.To)
	set := output.New(&output.Job{
		Def: def, Form: f.Form, RunID: o.RunID, Tables: o.Tables, Stdout: o.Stdout, Now: o.Now, Log: o.Logger, At: o.At,
		Encoders: reading.NewSlots(runtime.GOMAXPROCS(0)), Requests: func() load.Requests { return requestsOf(client.Requests()) }, Drift: func(string) {},
	})
	defer func() { err = errors.Join(err, set.Close(context.WithoutCancel(ctx))) }()
	if err := set.Open(ctx); err != nil {
		return err
	}
	began := o.Now().UTC()
	s, rows, err := look(ctx, client, def, o, iv, stream.Query{Form: f.Form, Limit: limit}, func(read int64) {
		o.Progress(Progress{Form: f.Form, Rows: read, Expected: limit, Requests: client.Requests().Results})
	})
	defer releaseAll(rows)
	if err != nil {
		return err
	}
	f.Verified, f.Windows = &load.Verified{Extracted: s.Read, Reason: LimitGiven}, 1
	f.Rows, f.Rejected = s.Stats.Rows, s.Stats.Rejected
	f.Rejects, f.Nulled = reading.Faults(s.Stats.Rejects), reading.Faults(s.Stats.Nulled)
	f.Drift = append(f.Drift, unreadNotes(s.Stats)...)
	defer func() { f.Outputs = set.Reports() }()
	w := &reading.Window{
		Planned: extract.Planned{Window: iv.Asked, Count: extract.Unknown}, Done: true,
		Reading: reading.Reading{IDs: idset.Of(s.IDs...), Stats: s.Stats, Rejects: s.Rejects, ReadAt: began},
	}
	return set.Commit(ctx, reconcile.Looked(iv, w, rows, s.Schema, s.Labels, *f.Verified), func(context.Context) {})
}

// Look writes some results of a form to w: the first ones by id, or the latest, these
// first. It costs a request for each hundred results.
func Look(ctx context.Context, def *definition.Definition, o Options, q stream.Query, format load.Format, w io.Writer) error {
	o = o.withDefaults()
	iv, err := reading.NewInterval(def, o.Flags(), o.Now())
	if err != nil {
		return err
	}
	client, err := account.NewClient(ctx, def, o.Options)
	if err != nil {
		return err
	}
	defer client.Close()
	s, rows, err := look(ctx, client, def, o, iv, q, func(int64) {})
	defer releaseAll(rows)
	if err != nil {
		return formFailed(q.Form, err)
	}
	read := []*reading.Window{{Reading: reading.Reading{Stats: s.Stats}}}
	schema := schemas.ArrowSchema(reconcile.Columns(s.Schema, s.Labels, read))
	if err := load.CheckSchema(schema); err != nil {
		return err
	}
	encoder, err := format.New(w, schema, load.EncodeOptions{Zone: def.Source.Zone})
	if err != nil {
		return err
	}
	for _, b := range rows {
		whole, err := transform.Conform(b, schema, nil)
		if err == nil {
			err = encoder.Write(whole)
			whole.Release()
		}
		if err != nil {
			return err
		}
	}
	return encoder.Close()
}

// look reads the results that a query names, one page after the other. The caller releases
// the rows, also after an error. watch is called with how many results are read.
func look(ctx context.Context, client extract.Client, def *definition.Definition, o Options, iv reading.Interval, q stream.Query, watch func(read int64)) (s *stream.Stream, rows []arrow.RecordBatch, err error) {
	q.Results = reading.Query(def.Extract)
	q.Results.Window, q.Schema, q.Labels = iv.Given, def.Schema, def.Labels
	q.Options = transform.Options{Zone: def.Source.Zone, Labels: def.Labels, Mem: o.batches}
	s, err = stream.Read(ctx, client, q, func(read int64, b arrow.RecordBatch) error {
		b.Retain()
		rows = append(rows, b)
		watch(read)
		return nil
	})
	return s, rows, err
}

func releaseAll(rows []arrow.RecordBatch) {
	for _, b := range rows {
		b.Release()
	}
}
