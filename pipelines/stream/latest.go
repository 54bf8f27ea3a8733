package stream

import (
	"context"
	"fmt"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
)

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
