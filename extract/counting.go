package extract

import (
	"context"
	"errors"

	"github.com/formetl/formetl/extract/page"
)

// Counting returns a service that counts results by reading them where the answers do
// not tell how many there are (ErrNoCount). That takes a request for each page.
func Counting(s Service) Service { return counting{s} }

type counting struct{ Service }

// Count asks for the count, and reads the results if that tells nothing.
func (c counting) Count(ctx context.Context, form string, q CountQuery) (int64, error) {
	n, err := c.Service.Count(ctx, form, q)
	if !errors.Is(err, ErrNoCount) {
		return n, err
	}
	n = 0
	err = NewReader(c.Service, form, ResultsQuery{}).Each(ctx, q.Window, q.IDs, func(p *page.Page) error {
		n += int64(p.Len())
		return nil
	})
	return n, err
}
