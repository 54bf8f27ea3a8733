package pipelines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// LimitGiven is the reason in load.Verified why Head does not verify the results that it reads.
const LimitGiven = "--limit was given"

// Head writes the first results of one form, by id, to the definition's outputs. It holds the
// results in memory, keeps nothing for a later run, and does not prove that they are complete.
// limit is how many results it reads at most.
func Head(ctx context.Context, def *definition.Definition, o Options, limit int64) (*Report, error) {
	o = o.WithDefaults()
	report := &Report{Pipeline: def.Name, RunID: o.RunID, StartedAt: o.Now().UTC(), Definition: def.File, Forms: []*FormReport{}}
	client, err := NewClient(ctx, def, o)
	if err != nil {
		return report, err
	}
	defer client.Close()
	report.API = client.Generation()
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
	iv, err := reading.NewInterval(def, o.Flags(def), o.Now())
	if err != nil {
		return err
	}
	f.Range = load.Span(iv.Read.From, iv.Read.To)
	set := output.New(&output.Job{
		Def: def, Form: f.Form, RunID: o.RunID, BuiltIn: o.BuiltIn, Stdout: o.Stdout, Now: o.Now, Log: o.Logger, At: o.At,
		Encoders: reading.NewSlots(runtime.GOMAXPROCS(0)), Requests: func() load.Requests { return requestsOf(client.Requests()) }, Drift: func(string) {}, Guarded: o.Guarded,
	})
	defer func() { err = errors.Join(err, set.Close(context.WithoutCancel(ctx))) }()
	if err := set.Open(ctx); err != nil {
		return err
	}
	began := o.Now().UTC()
	l := newLook(client, def, o, iv, LookQuery{Form: f.Form, Limit: limit})
	l.watch = func(read int64) {
		o.Progress(Progress{Form: f.Form, Rows: read, Expected: limit, Requests: client.Requests().Results})
	}
	defer l.release()
	if err := l.run(ctx); err != nil {
		return err
	}
	f.Verified, f.Windows = &load.Verified{Extracted: l.read, Reason: LimitGiven}, 1
	f.Rows, f.Rejected = l.stats.Rows, l.stats.Rejected
	f.Rejects, f.Nulled = reading.Faults(l.stats.Rejects), reading.Faults(l.stats.Nulled)
	f.Drift = append(f.Drift, unreadNotes(l.stats)...)
	defer func() { f.Outputs = set.Reports() }()
	w := &reading.Window{
		Planned: extract.Planned{Window: iv.Asked, Count: extract.Unknown}, Done: true,
		Reading: reading.Reading{IDs: idset.Of(l.ids...), Stats: l.stats, Rejects: l.rejects, ReadAt: began},
	}
	return set.Commit(ctx, reconcile.Looked(iv, w, l.rows, l.schema, l.labels, *f.Verified), func(context.Context) {})
}

// LookQuery says which results Look shows.
type LookQuery struct {
	Form   string
	Limit  int64 // how many results are shown at most
	Latest bool  // show the results with the highest ids, highest first, not those with the lowest
}

// Look writes some results of a form to w in a format. It costs one request for each full page
// of results.
func Look(ctx context.Context, def *definition.Definition, o Options, q LookQuery, format load.Format, w io.Writer) error {
	o = o.WithDefaults()
	iv, err := reading.NewInterval(def, o.Flags(def), o.Now())
	if err != nil {
		return err
	}
	client, err := NewClient(ctx, def, o)
	if err != nil {
		return err
	}
	defer client.Close()
	l := newLook(client, def, o, iv, q)
	defer l.release()
	if err := l.run(ctx); err != nil {
		return formFailed(q.Form, err)
	}
	schema := schemas.ArrowSchema(reconcile.Columns(l.schema, l.labels, []*reading.Window{{Reading: reading.Reading{Stats: l.stats}}}))
	if err := load.CheckSchema(schema); err != nil {
		return err
	}
	encoder, err := format.New(w, schema, load.EncodeOptions{Zone: def.Source.Zone})
	if err != nil {
		return err
	}
	for _, b := range l.rows {
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

// look reads the results of a query one page after the other, and holds their rows in
// memory. Without a schema the columns are those of the headings and of the first pages.
type look struct {
	client extract.Client
	q      LookQuery
	query  extract.ResultsQuery // the query, with the range that was given as its window
	naming schemas.Naming       // what inferred columns are named after
	watch  func(read int64)     // called with how many results were read so far

	schema  *schemas.Schema
	labels  map[string]string // headings by id; nil if the service has sent none
	read    int64
	ids     []int64 // ids of all results, also of rejected ones
	rejects []transform.Reject
	stats   transform.Stats
	rows    []arrow.RecordBatch

	options   transform.Options
	pages     []*page.Page // pages that were read and not yet flattened
	flattener *transform.Flattener
	lowest    int64 // the lowest id of the latest results so far; 0 before the first page
}

func newLook(client extract.Client, def *definition.Definition, o Options, iv reading.Interval, q LookQuery) *look {
	l := &look{
		client: client, q: q, query: reading.Query(def.Extract), naming: def.Names, watch: func(int64) {}, schema: def.Schema,
		options: transform.Options{Zone: def.Source.Zone, Naming: def.Names, Mem: o.batches},
	}
	l.query.Window = iv.Given
	l.options.Emit = func(b arrow.RecordBatch) error {
		b.Retain()
		l.rows = append(l.rows, b)
		return nil
	}
	l.options.Reject = func(r transform.Reject) error {
		l.rejects = append(l.rejects, r)
		return nil
	}
	return l
}

// lookSamplePages is from how many pages Look and Head infer columns at most.
const lookSamplePages = 5

// run reads pages up to the query's limit, and flattens them into rows.
func (l *look) run(ctx context.Context) error {
	next := l.latest
	if !l.q.Latest {
		common := l.query
		common.Window = extract.Window{}
		next = extract.NewReader(l.client, l.q.Form, common).Window(l.query.Window, extract.IDRange{}, extract.Unknown).Next
	}
	for l.read < l.q.Limit {
		p, err := next(ctx)
		if err != nil {
			return err
		}
		if p == nil {
			break
		}
		l.keep(p)
		p.DropEarly()
		if left := l.q.Limit - l.read; int64(p.Len()) > left {
			p.Filter(func(int64) bool { left--; return left >= 0 })
		}
		l.read += int64(p.Len())
		l.ids = append(l.ids, p.IDs()...)
		l.watch(l.read)
		if l.schema != nil || len(l.pages) == lookSamplePages {
			if err := l.flatten(); err != nil {
				return err
			}
		}
	}
	// An empty range has no results to infer columns from, so its headings are asked for.
	if l.schema == nil && len(l.pages) == 0 {
		q := l.query
		q.Headings, q.Limit = true, 1
		p, err := l.client.Results(ctx, l.q.Form, q)
		if err != nil {
			return err
		}
		p.Filter(func(int64) bool { return false })
		l.keep(p)
	}
	return l.flatten()
}

// latest returns the next page of the results with the highest ids, in descending order, and
// nil at the end.
func (l *look) latest(ctx context.Context) (*page.Page, error) {
	if l.lowest == 1 {
		return nil, nil
	}
	q := l.query
	q.Headings, q.Descending, q.Limit = l.lowest == 0, true, int(min(l.q.Limit-l.read, int64(l.client.PageSize())))
	if l.lowest > 1 {
		q.IDs.Max = l.lowest - 1
	}
	p, err := l.client.Results(ctx, l.q.Form, q)
	if err != nil {
		return nil, fmt.Errorf("the latest results: %w", err)
	}
	n := p.Len()
	if n > 0 {
		if _, falls := p.Order(); !falls || l.lowest > 0 && p.ID(0) >= l.lowest {
			p.Release()
			return nil, &extract.BreachError{Ignores: "the descending order of ids", Proof: "the latest results do not come first"}
		}
		l.lowest = p.ID(n - 1)
	}
	if n < q.Limit {
		l.lowest = 1 // no further page follows
	}
	return p, nil
}

// keep keeps a page until it is flattened, and the headings of the first page that has any.
func (l *look) keep(p *page.Page) {
	l.pages = append(l.pages, p)
	if l.labels == nil && len(p.Headings) > 0 {
		l.options.Headings = slices.Clone(p.Headings)
		l.labels = map[string]string{}
		for _, h := range p.Headings {
			l.labels[h.ID] = h.Label
		}
	}
}

// flatten makes rows of the pages that are kept. The error is a *reading.RejectsError if more
// results are rejected than the schema allows.
func (l *look) flatten() (err error) {
	if l.schema == nil {
		l.schema = transform.Infer(l.q.Form, l.pages, l.naming)
	}
	if l.flattener == nil {
		if l.flattener, err = transform.NewFlattener(l.schema, l.options); err != nil {
			return err
		}
	}
	for _, p := range l.pages {
		if err = l.flattener.Append(p); err == nil {
			err = l.flattener.Flush()
		}
		l.stats = l.flattener.Stats()
		if most := l.schema.MaxRejects; err == nil && len(l.rejects) > most {
			err = &reading.RejectsError{Rejected: int64(len(l.rejects)), Max: most, Faults: l.stats.Rejects}
		}
		if err != nil {
			return err
		}
	}
	l.releasePages()
	return nil
}

func (l *look) releasePages() {
	for _, p := range l.pages {
		p.Release()
	}
	l.pages = nil
}

// release gives back the memory of the pages and rows.
func (l *look) release() {
	l.releasePages()
	if l.flattener != nil {
		l.flattener.Release()
	}
	for _, b := range l.rows {
		b.Release()
	}
}
