package upkeep

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

// Bounds of a sample of InferSchema.
const (
	DefaultSample = 1000
	MaxSample     = 100_000
)

// Sampled tells what a sample is of.
type Sampled struct {
	Range    extract.Window
	Results  int   // results of the sample, each counted once
	Total    int64 // results of the range; extract.Unknown where they were not counted, or a search or view leaves some out
	Requests int   // requests that the sample cost
	Whole    bool  // the sample holds every result of the range
}

// readSample reads a sample of the form's results in the definition's range, with its search
// and view. give releases the pages that it gets, none of whose results it got before.
func readSample(ctx context.Context, def *definition.Definition, o pipelines.Options, form string, want int, give func(*page.Page)) (Sampled, error) {
	o = o.WithDefaults()
	client, err := pipelines.NewClient(ctx, def, o)
	if err != nil {
		return Sampled{}, err
	}
	defer client.Close()
	s := &sampler{client: client, form: form, want: want, give: give, query: reading.Query(def.Extract), seen: map[int64]struct{}{}}
	// The range has no settling time, because a sample need not be the same twice.
	w := reading.Given(def.Extract, o.Flags())
	if s.query.Window = w; !w.From.IsZero() && !w.To.IsZero() && !w.From.Before(w.To) {
		return Sampled{}, &reading.RangeError{Window: w}
	}
	s.Range, s.Total = w, extract.Unknown
	err = s.read(ctx)
	s.Results = len(s.seen)
	if len(s.query.Search.Where) > 0 || s.query.View != "" { // counts include results that these leave out
		s.Total = extract.Unknown
	}
	return s.Sampled, err
}

// sampler reads results that are spread over a range: the first of it, the
// last, and pages that begin at evenly spread ids between them. Ids are given
// in the order of starts, so that this spreads the sample over time as well.
//
// Results that come again are dropped, and a page without a new one ends the
// sample. So it is small where the service ignores the order or the bounds of ids.
type sampler struct {
	Sampled
	client extract.Client
	form   string
	query  extract.ResultsQuery // what all requests share
	want   int
	give   func(*page.Page)
	seen   map[int64]struct{}
}

// read takes the sample. Where the service keeps the order, pages are given by ascending id,
// so that the last one shows the form as it is now.
func (s *sampler) read(ctx context.Context) error {
	q := s.query
	q.Headings = true
	first, err := s.ask(ctx, q, (s.want+1)/2)
	if err != nil {
		return err
	}
	s.give(first.fresh)
	if first.results == 0 {
		s.Whole = true
		return nil
	}
	// The last page is read even if the first is short, because a service may give
	// shorter pages than it was asked for.
	q.Descending = true
	last, err := s.ask(ctx, q, s.want-len(s.seen))
	if err != nil {
		return err
	}
	defer func() { s.give(last.fresh) }()
	at, end := first.highest+1, last.lowest-1
	if s.Whole = first.rises && last.falls; !s.Whole || at > end {
		return nil
	}
	s.Requests++
	total, err := s.client.Count(ctx, s.form, extract.CountQuery{Window: s.query.Window})
	switch {
	case err == nil:
		s.Total = total // with a search or a view it is an upper bound
	case !errors.Is(err, extract.ErrNoCount):
		return err
	}
	if s.Whole = s.everything(); s.Whole {
		return nil
	}
	// Either there is room for all results between, or as many pages are read as there is room
	// for. These begin so that each likely lies in the middle of a part of the ids.
	all := s.Total <= int64(s.want)
	pages := max(1, (s.want-len(s.seen)+first.results-1)/first.results)
	begin, part := at, float64(end-at)/float64(pages)
	read := min(1, float64(s.want-len(s.seen))/float64(max(1, s.Total-int64(len(s.seen)))))
	q = s.query
	for i := 0; at <= end && len(s.seen) < s.want && (all || i < pages); i++ {
		if !all {
			at = max(at, min(end, begin+int64(part*(float64(i)+(1-read)/2))))
		}
		q.IDs = extract.IDRange{Min: at, Max: end}
		p, err := s.ask(ctx, q, s.want-len(s.seen))
		if err != nil {
			return err
		}
		fresh := p.fresh.Len()
		s.give(p.fresh)
		if fresh == 0 || all && p.results < first.results {
			s.Whole = all && p.results < first.results
			return nil
		}
		at = p.highest + 1
	}
	s.Whole = all && (at > end || s.everything())
	return nil
}

// everything tells whether the sample holds the whole range.
func (s *sampler) everything() bool {
	return s.Total != extract.Unknown && int64(len(s.seen)) >= s.Total
}

// answer is a page as it came.
type answer struct {
	results         int
	lowest, highest int64 // ids; without results they bound nothing
	rises, falls    bool
	fresh           *page.Page // its new results alone, by ascending id
}

// ask asks for about n results. It sends no limit for a full page, and one of two at least,
// since one result shows no order.
func (s *sampler) ask(ctx context.Context, q extract.ResultsQuery, n int) (answer, error) {
	if n < s.client.PageSize() {
		q.Limit = max(2, n)
	}
	s.Requests++
	p, err := s.client.Results(ctx, s.form, q)
	if err != nil {
		return answer{}, err
	}
	a := answer{results: p.Len(), lowest: slices.Min(append(p.IDs(), math.MaxInt64)), highest: slices.Max(append(p.IDs(), -1)), fresh: p}
	a.rises, a.falls = p.Order()
	p.Filter(func(id int64) bool {
		_, again := s.seen[id]
		s.seen[id] = struct{}{}
		return !again
	})
	p.SortByID()
	return a, nil
}
