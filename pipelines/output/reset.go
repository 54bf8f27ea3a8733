package output

import (
	"context"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Reset says what ResetWatermark did to a dataset.
type Reset struct {
	Before, After load.WallTime // the watermark; equal if it did not change
	// Recovery is the recorded commit that ResetWatermark finished first.
	Recovery load.Recovery
}

// ResetWatermark sets the watermark of a dataset back to a time, or to none if
// the time is zero. It holds the dataset's lease meanwhile, and first finishes
// a recorded commit. It does nothing if no run has left anything there.
func ResetWatermark(ctx context.Context, job *Job, out definition.Output, to load.WallTime) (r Reset, err error) {
	p, err := job.placeOf(out)
	if err != nil {
		return r, err
	}
	found, err := p.left(ctx)
	if found == nil || err != nil {
		return r, err
	}
	opened, err := p.open(ctx)
	if err != nil {
		return r, err
	}
	o, _ := opened.(*dataset)
	err = o.reset(ctx, found, &r, to)
	return r, errors.Join(err, o.close(context.WithoutCancel(ctx)))
}

// left returns what runs left at a dataset, or nil if they left nothing. It takes no
// lease, because that would create the folder of a dataset that was never written.
func (p *place) left(ctx context.Context) (*load.Found, error) {
	dest, err := p.job.Tables.Open(ctx, p.Root, p.out)
	if err != nil {
		return nil, err
	}
	found, err := load.Look(ctx, dest, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	_, _, err = dest.Get(ctx, load.ManifestName)
	if errors.Is(err, load.ErrNotExist) && found.Nothing() {
		return nil, nil
	}
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	return &found, nil
}

// reset sets the watermark back and fills in r. Opening the dataset has already
// finished a recorded commit.
func (o *dataset) reset(ctx context.Context, found *load.Found, r *Reset, to load.WallTime) error {
	r.Recovery = load.Recovery{RunID: found.Pending, Finished: o.manifest != nil && o.manifest.RunID == found.Pending}
	if o.manifest != nil {
		r.Before, r.After = o.manifest.Watermark, o.manifest.Watermark
	}
	if err := o.fits(); err != nil || o.manifest == nil {
		return err
	}
	if err := o.held(); err != nil {
		return err
	}
	if _, err := load.ResetWatermark(ctx, o.dest, to); err != nil {
		return o.named(err)
	}
	r.After = to
	return nil
}
