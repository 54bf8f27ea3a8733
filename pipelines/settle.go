package pipelines

import (
	"context"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// settle brings what was read to agree with itself, with older parts, and with
// the service's counts.
func (f *formRun) settle(ctx context.Context) error {
	for {
		if err := f.settleDuplicates(ctx); err != nil {
			return err
		}
		if err := f.readOlder(ctx); err != nil {
			return err
		}
		if err := f.verify(ctx); err != nil {
			return err
		}
		if f.freshIDs().IsEmpty() {
			return nil
		}
	}
}

func spanOf(r load.Range) extract.Window { return extract.Window{From: r.From.Time, To: r.To.Time} }

// age shows how long ago something was, for people.
func age(now, then time.Time) time.Duration { return now.Sub(then).Round(time.Second) }
