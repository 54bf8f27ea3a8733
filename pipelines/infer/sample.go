package infer

import (
	"context"
	"math"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
)

// Bounds of a sample of Schema.
const (
	DefaultSample = 1000
	MaxSample     = 100_000
)

// Sampled tells what a sample is of.
type Sampled struct {
	Range    extract.Window
	Results  int   // of the sample, each counted once
	Total    int64 // of the range; extract.Unknown where they were not counted, or a search or view leaves some out
	Requests int   // what it cost
	Whole    bool  // the sample is every result
}

// sampler reads results that are spread over a range: the first of it, the
// last, and pages that begin at evenly spread ids between them. Ids are given
// in the order of starts, so that this spreads the sample over time as well.
//
// It trusts the service with little: results that come again are dropped, a
// page that brings no new one ends the sample, and where order or id bounds
// are ignored pages are asked for by their numbers.
type sampler struct {
	client extract.Client
	form   string
	query  extract.ResultsQuery // what all requests share
	want   int
	// give takes a page of which no result was given before. It is give's to
	// release.
	give func(*page.Page)

	seen    map[int64]struct{}
	length  int // of the first page as it came
	sampled Sampled
}

// read takes the sample. Pages are given by ascending id where the service
// keeps the order, so that the last one tells what the form is like now.
func (s *sampler) read(ctx context.Context) (Sampled, error) {
	s.seen = map[int64]struct{}{}
	s.sampled = Sampled{Range: s.query.Window, Total: extract.Unknown}
	err := s.readEdges(ctx)
	s.sampled.Results = len(s.seen)
	if len(s.query.Search.Where) > 0 || s.query.View != "" { // a bound at best
		s.sampled.Total = extract.Unknown
	}
	return s.sampled, err
}

// readEdges reads the first results and the last, and what lies between them.
func (s *sampler) readEdges(ctx context.Context) error {
	q := s.query
	q.Headings, q.Limit = true, s.atMost((s.want+1)/2)
	first, err := s.ask(ctx, q)
	if err != nil {
		return err
	}
	rises, _ := rising(first)
	_, highest := bounds(first)
	s.length = first.Len()
	s.fresh(first)
	s.give(first)
	if s.length == 0 {
		s.sampled.Whole = true
		return nil
	}
	// Also where the first page is short: a service may have shorter pages than
	// it should, and the last page tells.
	q.Descending, q.Limit = true, s.atMost(s.want-len(s.seen))
	last, err := s.ask(ctx, q)
	if err != nil {
		return err
	}
	defer func() { s.give(last) }()
	_, falls := rising(last)
	lowest, _ := bounds(last)
	s.fresh(last)
	switch {
	case !rises || !falls:
		return s.numbered(ctx)
	case lowest <= highest || lowest == highest+1:
		s.sampled.Whole = true
		return nil
	}
	return s.between(ctx, extract.IDRange{Min: highest + 1, Max: lowest - 1})
}

// between reads pages of the ids between the first page and the last: all of
// them where the sample has room for them, else evenly spread ones.
func (s *sampler) between(ctx context.Context, gap extract.IDRange) error {
	if done, err := s.count(ctx); done || err != nil {
		return err
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
		n := p.Len()
		lowest, highest := bounds(p)
		fresh := s.fresh(p)
		s.give(p)
		switch {
		case n > 0 && lowest < q.IDs.Min:
			return s.numbered(ctx)
		case fresh == 0 || all && n < s.length:
			s.sampled.Whole = all
			return nil
		}
		at = highest + 1
	}
	s.sampled.Whole = all && (at > gap.Max || s.everything())
	return nil
}

// spread divides ids into as many parts as pages are read of them, and gives
// where to begin in each, so that what a page is likely to bring lies in the
// middle of its part.
func (s *sampler) spread(gap extract.IDRange) (pages int, start func(i int) int64) {
	pages = s.pages()
	part := float64(gap.Max-gap.Min) / float64(pages)
	read := min(1, float64(s.want-len(s.seen))/float64(max(1, s.sampled.Total-int64(len(s.seen)))))
	return pages, func(i int) int64 {
		return min(gap.Max, gap.Min+int64(part*(float64(i)+(1-read)/2)))
	}
}

// numbered reads evenly spread pages by their numbers.
func (s *sampler) numbered(ctx context.Context) error {
	if done, err := s.count(ctx); done || err != nil {
		return err
	}
	all := (s.sampled.Total + int64(s.length) - 1) / int64(s.length) // the first is read
	pages := min(int64(s.pages()), all-1)
	for i := range pages {
		q := s.query
		q.Page, q.Limit = int(2+i*(all-1)/pages), s.atMost(s.length)
		p, err := s.ask(ctx, q)
		if err != nil {
			return err
		}
		fresh := s.fresh(p)
		s.give(p)
		if fresh == 0 || len(s.seen) >= s.want {
			break
		}
	}
	s.sampled.Whole = s.everything()
	return nil
}

// count counts the range, unless it has been; done tells that the sample is
// complete. Counts know nothing of searches and views: there it is a bound.
func (s *sampler) count(ctx context.Context) (done bool, err error) {
	if s.sampled.Total == extract.Unknown {
		s.sampled.Requests++
		s.sampled.Total, err = s.client.Count(ctx, s.form, extract.CountQuery{Window: s.query.Window})
		if err != nil {
			s.sampled.Total = extract.Unknown
			return false, err
		}
	}
	s.sampled.Whole = s.everything()
	return s.sampled.Whole || len(s.seen) >= s.want, nil
}

// everything tells whether nothing of the range is left.
func (s *sampler) everything() bool {
	return s.sampled.Total != extract.Unknown && int64(len(s.seen)) >= s.sampled.Total
}

// pages is how many pages more the sample takes, at least one.
func (s *sampler) pages() int { return max(1, (s.want-len(s.seen)+s.length-1)/s.length) }

// atMost is the limit for n results: 0, which is none, for a full page. Two
// are the least that show an order.
func (s *sampler) atMost(n int) int {
	if n >= extract.PageSize {
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

// rising tells whether the page's ids rise and whether they fall; one does both.
func rising(p *page.Page) (rises, falls bool) {
	rises, falls = true, true
	for i := 1; i < p.Len(); i++ {
		rises, falls = rises && p.ID(i-1) < p.ID(i), falls && p.ID(i-1) > p.ID(i)
	}
	return rises, falls
}

// bounds are the least and the greatest id of a page.
func bounds(p *page.Page) (least, greatest int64) {
	least, greatest = math.MaxInt64, -1
	for i := range p.Len() {
		least, greatest = min(least, p.ID(i)), max(greatest, p.ID(i))
	}
	return least, greatest
}
