package reading

import (
	"context"

	"github.com/formetl/formetl/extract/page"
)

// ahead calls use with each page that next returns. It asks for a page while use
// works on the one before, so that at most two pages are kept. It returns the
// first error, and only after the last call of next has ended.
func ahead(ctx context.Context, next func(context.Context) (*page.Page, error), use func(*page.Page) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	pages := make(chan *page.Page)
	var failed error // of next; it is set before pages is closed
	go func() {
		defer close(pages)
		for {
			p, err := next(ctx)
			if err != nil || p == nil {
				failed = err
				return
			}
			select {
			case pages <- p:
			case <-ctx.Done():
				p.Release()
				failed = context.Cause(ctx)
				return
			}
		}
	}()
	for p := range pages {
		if err != nil {
			p.Release()
		} else if err = use(p); err != nil {
			stop()
		}
	}
	stop()
	if err == nil {
		err = failed
	}
	return err
}
