// Package stream reads results of a form one page after the other, in the order of ids,
// and gives them as record batches as they come. Nothing is kept for a later run.
//
// It is for looks at a form and for the first results of an export. Package reading reads
// whole forms, with several requests at once.
//
// Begin reading with Read.
package stream

import (
	"context"
	"fmt"
	"slices"

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

// Stream is what was read of a form.
type Stream struct {
	Schema  *schemas.Schema
	Labels  map[string]string // headings by id; nil if the service has sent none
	Read    int64
	IDs     []int64 // of all results, also of rejected ones
	Rejects []transform.Reject
	Stats   transform.Stats

	q         Query
	head      []*page.Page // read, and not yet given as rows
	flattener *transform.Flattener
}

// source gives the pages of a stream one by one, and nil at the end.
type source interface {
	Next(ctx context.Context) (*page.Page, error)
}

func pagesOf(service extract.Service, q Query) source {
	if q.Latest {
		return &latest{service: service, q: q}
	}
	common := q.Results
	common.Window = extract.Window{}
	return extract.NewReader(service, q.Form, common).Window(q.Results.Window, extract.IDRange{}, extract.Unknown)
}

// Read reads the results of a query. It calls emit with the rows of each page, and with how
// many results are read. A batch is valid only during the call. The Stream is never nil.
func Read(ctx context.Context, service extract.Service, q Query, emit func(read int64, rows arrow.RecordBatch) error) (*Stream, error) {
	s := &Stream{Schema: q.Schema, q: q}
	s.q.Options.Emit = func(rows arrow.RecordBatch) error { return emit(s.Read, rows) }
	defer s.release()
	pages, sample := pagesOf(service, q), samplePages
	if s.Schema != nil {
		sample = 1
	}
	for {
		p, err := s.next(ctx, pages)
		if err == nil && p == nil && s.Schema == nil && len(s.head) == 0 {
			err = s.onlyHeadings(ctx, service)
		}
		if err == nil && (p == nil || s.Schema != nil || len(s.head) == sample) {
			err = s.flatten()
		}
		if err != nil || p == nil {
			return s, err
		}
	}
}

// next keeps the next page, cut to the limit, and the labels of the first headings. It
// returns nil at the end.
func (s *Stream) next(ctx context.Context, pages source) (*page.Page, error) {
	left := s.q.Limit - s.Read
	if left <= 0 {
		return nil, nil
	}
	p, err := pages.Next(ctx)
	if err != nil || p == nil {
		return nil, err
	}
	s.keep(p)
	p.DropEarly()
	if int64(p.Len()) > left {
		p.Filter(func(int64) bool { left--; return left >= 0 })
	}
	s.Read += int64(p.Len())
	s.IDs = append(s.IDs, p.IDs()...)
	return p, nil
}

// onlyHeadings keeps an empty answer: an empty range shows no columns, and its headings do.
func (s *Stream) onlyHeadings(ctx context.Context, service extract.Service) error {
	q := s.q.Results
	q.Headings, q.Limit = true, 1
	p, err := service.Results(ctx, s.q.Form, q)
	if err != nil {
		return err
	}
	p.Filter(func(int64) bool { return false })
	s.keep(p)
	return nil
}

// keep keeps a page until its rows are given.
func (s *Stream) keep(p *page.Page) {
	s.head = append(s.head, p)
	if s.Labels == nil && len(p.Headings) > 0 {
		s.q.Options.Headings = slices.Clone(p.Headings)
		s.Labels = map[string]string{}
		for _, h := range p.Headings {
			s.Labels[h.ID] = h.Label
		}
	}
}

// flatten gives the rows of the pages that are kept at once, so that they wait for no other.
func (s *Stream) flatten() (err error) {
	if s.Schema == nil {
		s.Schema = transform.Infer(s.q.Form, s.head, s.q.Labels)
	}
	if s.flattener == nil {
		s.q.Options.Reject = func(r transform.Reject) error {
			s.Rejects = append(s.Rejects, r)
			return nil
		}
		if s.flattener, err = transform.NewFlattener(s.Schema, s.q.Options); err != nil {
			return err
		}
	}
	for _, p := range s.head {
		err = s.flattener.Append(p)
		s.Stats = s.flattener.Stats()
		if most := s.Schema.MaxRejects; err == nil && len(s.Rejects) > most {
			err = reading.TooManyRejects(s.q.Form, int64(len(s.Rejects)), most, s.Stats.Rejects)
		}
		if err == nil {
			err = s.flattener.Flush()
		}
		if err != nil {
			return err
		}
		s.Stats = s.flattener.Stats()
	}
	s.releasePages()
	return nil
}

func (s *Stream) releasePages() {
	for _, p := range s.head {
		p.Release()
	}
	s.head = nil
}

func (s *Stream) release() {
	s.releasePages()
	if s.flattener != nil {
		s.flattener.Release()
	}
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
