// Package stream reads results of a form one page after the other, in the order of ids,
// and gives them as record batches as they come. Nothing is kept for a later run.
//
// It is for looks at a form and for the first results of an export. Package reading reads
// whole forms, with several requests at once.
//
// Begin reading with Open and Stream.Each.
package stream

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Query says which results are read.
type Query struct {
	Form    string
	Results extract.ResultsQuery // its search, view, custom labels and window
	Limit   int64                // most results
	Latest  bool                 // the results with the highest ids, these first
	// Schema says what the rows hold. If it is nil, the columns are those of the headings
	// and of the first 500 results.
	Schema  *schemas.Schema
	Labels  bool // inferred columns are named by headings
	Options transform.Options
}

// samplePages is how many pages columns are inferred from.
const samplePages = 5

// Stream is a form whose columns are known and whose results are being read.
type Stream struct {
	Schema *schemas.Schema
	Labels map[string]string // headings by id; nil if the service has sent none

	// Read, IDs, Rejects and Stats grow while Each reads.
	Read    int64
	IDs     *roaring64.Bitmap // of all results, also of rejected ones
	Rejects []transform.Reject
	Stats   transform.Stats

	q       Query
	service extract.Service
	pages   source
	head    []*page.Page // read before the columns were known
}

// source gives the pages of a stream one by one, and nil at the end.
type source interface {
	Next(ctx context.Context) (*page.Page, error)
}

// Open asks for the first page, and for more if columns are inferred from them. The
// caller closes the stream.
func Open(ctx context.Context, service extract.Service, q Query) (*Stream, error) {
	s := &Stream{Schema: q.Schema, IDs: roaring64.New(), q: q, service: service, pages: pagesOf(service, q)}
	if err := s.sample(ctx); err != nil {
		s.Close()
		return nil, err
	}
	if s.Schema == nil {
		s.Schema = transform.Infer(q.Form, s.head, q.Labels)
	}
	return s, nil
}

func pagesOf(service extract.Service, q Query) source {
	if q.Latest {
		return &latest{service: service, q: q}
	}
	common := q.Results
	common.Window = extract.Window{}
	return extract.NewReader(service, q.Form, common).Window(q.Results.Window, extract.IDRange{}, extract.Unknown)
}

// sample reads the pages that columns are inferred from, or one page.
func (s *Stream) sample(ctx context.Context) error {
	most, results := samplePages, int64(0)
	if s.Schema != nil {
		most = 1
	}
	for len(s.head) < most && results < s.q.Limit {
		p, err := s.pages.Next(ctx)
		if err != nil {
			return err
		}
		if p == nil {
			break
		}
		s.keep(p)
		results += int64(p.Len())
	}
	if results > 0 || s.Schema != nil {
		return nil
	}
	// An empty range shows no columns, but an empty answer has the headings.
	q := s.q.Results
	q.Headings, q.Limit = true, 1
	p, err := s.service.Results(ctx, s.q.Form, q)
	if err != nil {
		return err
	}
	p.Filter(func(int64) bool { return false })
	s.keep(p)
	return nil
}

// keep keeps a page until its rows are given, and the labels of the first headings.
func (s *Stream) keep(p *page.Page) {
	s.head = append(s.head, p)
	if s.Labels == nil && len(p.Headings) > 0 {
		s.Labels = map[string]string{}
		for _, h := range p.Headings {
			s.Labels[h.ID] = h.Label
		}
	}
}

// Close releases the pages that were not used.
func (s *Stream) Close() {
	for _, p := range s.head {
		p.Release()
	}
	s.head = nil
}

// Each calls emit with the rows of each page. A batch is valid only during the call.
func (s *Stream) Each(ctx context.Context, emit func(arrow.RecordBatch) error) error {
	o := s.q.Options
	var f *transform.Flattener
	o.Emit = emit
	o.Reject = func(r transform.Reject) error {
		s.Rejects = append(s.Rejects, r)
		return nil
	}
	for _, p := range s.head {
		if len(p.Headings) > 0 {
			o.Headings = slices.Clone(p.Headings)
			break
		}
	}
	var err error
	if f, err = transform.NewFlattener(s.Schema, o); err != nil {
		return err
	}
	defer f.Release()
	for {
		p, err := s.next(ctx)
		if err == nil && p != nil {
			err = s.append(f, p)
		}
		s.Stats = f.Stats()
		if err != nil || p == nil {
			return err
		}
	}
}

// next returns the next page, cut to the limit, or nil at the end.
func (s *Stream) next(ctx context.Context) (p *page.Page, err error) {
	left := s.q.Limit - s.Read
	switch {
	case left <= 0:
		return nil, nil
	case len(s.head) > 0:
		p, s.head = s.head[0], s.head[1:]
	default:
		if p, err = s.pages.Next(ctx); err != nil || p == nil {
			return nil, err
		}
	}
	p.DropEarly()
	if int64(p.Len()) > left {
		p.Filter(func(int64) bool { left--; return left >= 0 })
	}
	s.Read += int64(p.Len())
	for i := range p.Len() {
		s.IDs.Add(uint64(p.ID(i))) //nolint:gosec // ids are not negative
	}
	return p, nil
}

// append gives the rows of a page at once, so that they do not wait for the next one.
func (s *Stream) append(f *transform.Flattener, p *page.Page) error {
	defer p.Release()
	if err := f.Append(p); err != nil {
		return err
	}
	if most := s.Schema.MaxRejects; len(s.Rejects) > most {
		return reading.TooManyRejects(s.q.Form, int64(len(s.Rejects)), most, f.Stats().Rejects)
	}
	return f.Flush()
}

// latest gives the results with the highest ids, page by page downwards.
type latest struct {
	service extract.Service
	q       Query
	read    int64
	lowest  int64 // the lowest id so far; 0 before the first page
	over    bool
}

// Next implements source.
func (l *latest) Next(ctx context.Context) (*page.Page, error) {
	left := l.q.Limit - l.read
	if l.over || left <= 0 {
		return nil, nil
	}
	q := l.q.Results
	q.Headings, q.Descending, q.Limit = l.lowest == 0, true, int(min(left, int64(l.service.PageSize())))
	if l.lowest > 1 {
		q.IDs.Max = l.lowest - 1
	}
	p, err := l.service.Results(ctx, l.q.Form, q)
	if err != nil {
		return nil, fmt.Errorf("the latest results: %w", err)
	}
	n := p.Len()
	if n == 0 {
		l.over = true
		return p, nil // it may have headings
	}
	if _, falls := p.Order(); !falls || l.lowest > 0 && p.ID(0) >= l.lowest {
		p.Release()
		return nil, &extract.BreachError{Ignores: "the descending order of ids", Proof: "the latest results do not come first"}
	}
	l.read, l.lowest = l.read+int64(n), p.ID(n-1)
	l.over = n < q.Limit || l.lowest <= 1
	return p, nil
}
