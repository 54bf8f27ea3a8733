package extract

import (
	"context"
	"errors"

	"github.com/formetl/formetl/extract/page"
)

// Counting returns a service whose counts are those of the window alone, without the
// overlap of API v2. It counts results by reading them where the answers do not tell how
// many there are (ErrNoCount). That takes a request for each page.
func Counting(c Client) Service { return counting{c} }

type counting struct{ Client }

// Count asks for the count, and reads the results if that tells nothing.
func (c counting) Count(ctx context.Context, form string, q CountQuery) (int64, error) {
	n, err := c.Client.Count(ctx, form, q)
	if err == nil && n > 0 {
		overlap, err := Overlap(ctx, c.Client, form, q)
		return max(0, n-overlap), err
	}
	if !errors.Is(err, ErrNoCount) {
		return n, err
	}
	n = 0
	err = NewReader(c.Client, form, ResultsQuery{}).Each(ctx, q.Window, q.IDs, func(p *page.Page) error {
		n += int64(p.Len())
		return nil
	})
	return n, err
}

// Overlap counts the results that a count includes though they lie in the second before its
// window. Only API v2 counts such results (service-v2.md, section 9). Overlap asks for that
// second alone, by one request.
func Overlap(ctx context.Context, c Client, form string, q CountQuery) (int64, error) {
	if c.Generation() != "v2" || q.Window.From.IsZero() {
		return 0, nil
	}
	q.Window.To = q.Window.From
	return c.Count(ctx, form, q)
}
