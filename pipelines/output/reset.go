package output

import (
	"context"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Reset is what ResetWatermark did to a dataset.
type Reset struct {
	Before, After load.WallTime // the watermark; equal where it stays
	// Recovery is the commit that was recorded and was finished first.
	Recovery load.Recovery
}

// ResetWatermark sets the watermark of the dataset at an output back to a time,
// under its lease; the zero time is none. A commit that is recorded is finished
// before. Where no run has left anything, nothing is done.
func ResetWatermark(ctx context.Context, job *Job, out definition.Output, path string, to load.WallTime) (r Reset, err error) {
	found, err := job.lookAt(ctx, out, path)
	if found == nil || err != nil {
		return r, err
	}
	opened, err := job.openDataset(ctx, out, path)
	if err != nil {
		return r, err
	}
	o, _ := opened.(*dataset)
	err = o.reset(ctx, found, &r, to)
	return r, errors.Join(err, o.close(context.WithoutCancel(ctx)))
}

// lookAt looks without the lease, which would make the folder of a dataset
// that was never written; nil where there is none, and nothing that a run left.
func (j *Job) lookAt(ctx context.Context, out definition.Output, path string) (*load.Found, error) {
	dest, err := j.Tables.Open(ctx, path, out)
	if err != nil {
		return nil, err
	}
	found, err := load.Look(ctx, dest, "")
	if err != nil && !errors.Is(err, load.ErrNoSweep) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	_, _, err = dest.Get(ctx, load.ManifestName)
	switch {
	case errors.Is(err, load.ErrNotExist) && found.Nothing():
		return nil, nil
	case err != nil && !errors.Is(err, load.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &found, nil
}

// reset resets the dataset under its lease; its recorded commit was finished
// when it was opened.
func (o *dataset) reset(ctx context.Context, found *load.Found, r *Reset, to load.WallTime) error {
	r.Recovery = load.Recovery{RunID: found.Pending, Finished: o.manifest != nil && o.manifest.RunID == found.Pending}
	if o.manifest != nil {
		r.Before, r.After = o.manifest.Watermark, o.manifest.Watermark
	}
	if err := o.fits(); err != nil {
		return err
	}
	if !to.IsZero() && o.manifest != nil && to.Compare(r.Before.Time) > 0 { // else it would fail half-way
		return fmt.Errorf("%s: %w", o.path, &load.WatermarkError{Watermark: r.Before, To: to})
	}
	if o.manifest == nil || to.Equal(r.Before.Time) {
		return nil
	}
	if err := o.held(); err != nil {
		return err
	}
	if _, err := load.ResetWatermark(ctx, o.dest, to); err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	r.After = to
	return nil
}
