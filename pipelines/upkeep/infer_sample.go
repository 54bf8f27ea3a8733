package upkeep

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
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

// sampler reads results that are spread over a range: the first of it, the
// last, and pages that begin at evenly spread ids between them. Ids are given
// in the order of starts, so that this spreads the sample over time as well.
//
// Results that come again are dropped, and a page without a new one ends the
// sample. So it is small where the service ignores the order or the bounds of ids.
type sampler struct {
	client extract.Client
	form   string
	query  extract.ResultsQuery // what all requests share
	want   int
	// give takes a page, none of whose results was given before, and releases it.
	give func(*page.Page)

	seen    map[int64]struct{}
	length  int // how many results the first page had
	sampled Sampled
}

// read takes the sample: the first results and the last, then those between them. Where the
// service keeps the order, pages are given by ascending id, so that the last one shows the
// form as it is now.
func (s *sampler) read(ctx context.Context) (Sampled, error) {
	s.seen = map[int64]struct{}{}
	s.sampled = Sampled{Range: s.query.Window, Total: extract.Unknown}
	err := s.readEdges(ctx)
	s.sampled.Results = len(s.seen)
	if len(s.query.Search.Where) > 0 || s.query.View != "" { // counts include results that these leave out
		s.sampled.Total = extract.Unknown
	}
	return s.sampled, err
}

func (s *sampler) readEdges(ctx context.Context) error {
	q := s.query
	q.Headings, q.Limit = true, s.atMost((s.want+1)/2)
	first, err := s.ask(ctx, q)
	if err != nil {
		return err
	}
	rises, _ := first.Order()
	highest := slices.Max(append(first.IDs(), -1))
	s.length = first.Len()
	s.fresh(first)
	s.give(first)
	if s.length == 0 {
		s.sampled.Whole = true
		return nil
	}
	// The last page is read even if the first is short, because a service may give
	// shorter pages than it was asked for.
	q.Descending, q.Limit = true, s.atMost(s.want-len(s.seen))
	last, err := s.ask(ctx, q)
	if err != nil {
		return err
	}
	defer func() { s.give(last) }()
	_, falls := last.Order()
	lowest := slices.Min(append(last.IDs(), math.MaxInt64))
	s.fresh(last)
	if !rises || !falls || lowest <= highest+1 {
		s.sampled.Whole = rises && falls
		return nil
	}
	return s.between(ctx, extract.IDRange{Min: highest + 1, Max: lowest - 1})
}

// between reads pages of the ids between the first page and the last: all of
// them where the sample has room for them, else evenly spread ones.
func (s *sampler) between(ctx context.Context, gap extract.IDRange) error {
	s.sampled.Requests++
	total, err := s.client.Count(ctx, s.form, extract.CountQuery{Window: s.query.Window})
	if err != nil && !errors.Is(err, extract.ErrNoCount) {
		return err
	}
	if err == nil {
		s.sampled.Total = total // with a search or a view it is an upper bound
	}
	if s.sampled.Whole = s.everything(); s.sampled.Whole {
		return nil
	}
	all := s.sampled.Total <= int64(s.want)
	pages, start := s.spread(gap)
	at := gap.Min
	for i := 0; at <= gap.Max && len(s.seen) < s.want && (all || i < pages); i++ {
		q := s.query
		q.IDs, q.Limit = extract.IDRange{Min: at, Max: gap.Max}, s.atMost(s.want-len(s.seen))
		if !all {
			q.IDs.Min = max(at, start(i))
		}
		p, err := s.ask(ctx, q)
		if err != nil {
			return err
		}
		n, highest := p.Len(), slices.Max(append(p.IDs(), -1))
		fresh := s.fresh(p)
		s.give(p)
		if fresh == 0 || all && n < s.length {
			s.sampled.Whole = all && n < s.length
			return nil
		}
		at = highest + 1
	}
	s.sampled.Whole = all && (at > gap.Max || s.everything())
	return nil
}

// spread divides a range of ids into as many parts as pages are read of it. It
// gives where a page begins in each part, so that the page likely lies in the
// middle of it.
func (s *sampler) spread(gap extract.IDRange) (pages int, start func(i int) int64) {
	pages = max(1, (s.want-len(s.seen)+s.length-1)/s.length)
	part := float64(gap.Max-gap.Min) / float64(pages)
	read := min(1, float64(s.want-len(s.seen))/float64(max(1, s.sampled.Total-int64(len(s.seen)))))
	return pages, func(i int) int64 {
		return min(gap.Max, gap.Min+int64(part*(float64(i)+(1-read)/2)))
	}
}

// everything tells whether the sample holds the whole range.
func (s *sampler) everything() bool {
	return s.sampled.Total != extract.Unknown && int64(len(s.seen)) >= s.sampled.Total
}

// atMost gives the limit that a request for n results sends: 0 for a full page, and
// at least two, since one result shows no order.
func (s *sampler) atMost(n int) int {
	if n >= s.client.PageSize() {
		return 0
	}
	return max(2, n)
}

func (s *sampler) ask(ctx context.Context, q extract.ResultsQuery) (*page.Page, error) {
	s.sampled.Requests++
	return s.client.Results(ctx, s.form, q)
}

// fresh keeps the page's new results, by ascending id, and counts them.
func (s *sampler) fresh(p *page.Page) int {
	p.Filter(func(id int64) bool {
		_, again := s.seen[id]
		s.seen[id] = struct{}{}
		return !again
	})
	p.SortByID()
	return p.Len()
}
