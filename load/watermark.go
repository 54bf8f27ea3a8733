package load

import (
	"context"
	"errors"
	"fmt"
)

// WatermarkError is a watermark that cannot be set: results between the
// present one and it were never read, and no run would look for them.
type WatermarkError struct {
	Watermark WallTime // the present one, zero if there is none
	To        WallTime
}

// Error says up to when results were read and what to do.
func (e *WatermarkError) Error() string {
	known := "it has none"
	if !e.Watermark.IsZero() {
		known = "results were read up to " + e.Watermark.String()
	}
	return fmt.Sprintf("the watermark of the dataset cannot be set to %s: %s, and those in between would be missing; give an earlier time, or none", e.To, known)
}

// ResetWatermark sets the watermark of the dataset at s back to a time, or, to
// the zero time, to none: the next incremental run begins like the first. It
// gives the watermark before and touches nothing but the manifest.
//
// The caller holds the lease and has called Recover: where a commit is
// recorded, or someone else writes the manifest meanwhile, the error wraps
// ErrConflict. Without a manifest it is ErrNotExist, where the manifest is none
// of ours a *ManifestError, and for a later time than the present one a
// *WatermarkError. An unfinished run is not gone on with after a reset: its
// journal began from another manifest.
func ResetWatermark(ctx context.Context, s Store, to WallTime) (before WallTime, err error) {
	i, err := readIntent(ctx, s, intentPath(""))
	if err == nil {
		return WallTime{}, fmt.Errorf("run %s is committing here, or died and is to be finished by the next run: %w", i.run(), ErrConflict)
	}
	if !errors.Is(err, ErrNotExist) {
		return WallTime{}, err
	}
	m, version, err := ReadManifest(ctx, s, ManifestName)
	if err != nil {
		return WallTime{}, err
	}
	before = m.Watermark
	switch {
	case to.Equal(before.Time):
		return before, nil
	case !to.IsZero() && (before.IsZero() || to.After(before.Time)):
		return before, &WatermarkError{Watermark: before, To: to}
	}
	m.Watermark = Wall(to.Time)
	data, err := m.Encode()
	if err != nil {
		return before, err
	}
	return before, s.Put(ctx, ManifestName, data, version)
}
