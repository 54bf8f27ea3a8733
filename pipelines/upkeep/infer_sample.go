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

// How many results InferSchema samples: by default, and at most.
const (
	DefaultSample = 1000
	MaxSample     = 100_000
)

// Sampled tells of which range a sample of results is, and how large sample and range are.
type Sampled struct {
	Range    extract.Window
	Results  int   // how many different results the sample has
	Total    int64 // results of the range; extract.Unknown if not counted, or with a search or view
	Requests int   // requests that the sample cost
	Whole    bool  // the sample holds every result of the range
}

// readSample reads a sample of about want results of the form in the definition's range, with the
// definition's search and view. It calls give with each page of results; no result comes twice.
// give has to release the pages.
func readSample(ctx context.Context, def *definition.Definition, o pipelines.Options, form string, want int, give func(*page.Page)) (Sampled, error) {
	o = o.WithDefaults()
	client, err := pipelines.NewClient(ctx, def, o)
	if err != nil {
		return Sampled{}, err
	}
	defer client.Close()
	s := &sampler{client: client, form: form, want: want, give: give, query: reading.Query(def.Extract), seen: map[int64]struct{}{}}
	// The range goes up to now, without the settling time of a run, because a sample need not be
	// the same twice.
	w := reading.Given(def.Extract, o.Flags(def))
	if s.query.Window = w; !w.From.IsZero() && !w.To.IsZero() && !w.From.Before(w.To) {
		return Sampled{}, &reading.RangeError{Window: w}
	}
	s.Range, s.Total = w, extract.Unknown
	err = s.read(ctx)
	s.Results = len(s.seen)
	if len(s.query.Search.Where) > 0 || s.query.View != "" {
		// The service's counts include results that a search or view leaves out.
		s.Total = extract.Unknown
	}
	return s.Sampled, err
}

// sampler reads a sample of results that is spread over a range: the first results of the range,
// the last ones, and pages that begin at evenly spread ids between these. The service gives out ids
// in the order in which results are started, so that this spreads the sample over time as well.
//
// Results that come again are dropped, and a page without a new result ends the sample. So the
// sample is small if the service ignores the order or the bounds of ids.
type sampler struct {
	Sampled
	client extract.Client
	form   string
	query  extract.ResultsQuery // the range, search and view that all requests share
	want   int
	give   func(*page.Page)
	seen   map[int64]struct{}
}

// read reads the sample. If the service keeps the order that it is asked for, give gets the pages
// by ascending ids, so that the last page shows the form as it is now.
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
	// The last page is read even if the first page is short, because a service may give shorter
	// pages than it was asked for.
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
		s.Total = total // with a search or a view, the count is an upper bound
	case !errors.Is(err, extract.ErrNoCount):
		return err
	}
	if s.Whole = s.everything(); s.Whole {
		return nil
	}
	// If the sample has room for all results between the first page and the last, all are read.
	// If not, the ids between are divided into as many parts as there is room for pages, and each
	// page begins so that it likely lies in the middle of its part.
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

// everything tells whether the sample holds all results of the range, by the service's count.
func (s *sampler) everything() bool {
	return s.Total != extract.Unknown && int64(len(s.seen)) >= s.Total
}

// answer is a page of results as the service sent it, and those of its results that are new.
type answer struct {
	results         int
	lowest, highest int64 // ids on the page; without results MaxInt64 and -1
	rises, falls    bool
	fresh           *page.Page // the results that no earlier page had, by ascending ids
}

// ask asks the service for about n results of q. If n is a full page or more, it sends no limit,
// else a limit of at least two, since one result shows no order.
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
