package load

import (
	"context"
	"errors"
)

// ResetWatermark sets the watermark of the dataset at s back to an earlier time. The zero time
// removes the watermark, and the next incremental run begins like the first; what is known of
// changes is removed too. With another time that knowledge stays, because changes from before
// that time would be lost otherwise. ResetWatermark returns the previous watermark. It changes
// nothing but the manifest.
//
// The caller holds the lease and has called Recover. The error wraps
// ErrConflict if a commit is recorded or someone else writes the manifest
// meanwhile. It wraps ErrNotExist if there is no manifest. It is a
// *ManifestError if the manifest is damaged, and an ErrUsage if the time
// is later than the present watermark. An unfinished run is not resumed after a
// reset, because it began from another manifest.
func ResetWatermark(ctx context.Context, s Store, to WallTime) (before WallTime, err error) {
	if c, err := readRecord(ctx, s, recordName("")); err != nil {
		return WallTime{}, err
	} else if c != nil {
		return WallTime{}, c.busy()
	}
	m, version, err := ReadManifest(ctx, s, ManifestName)
	if err != nil {
		return WallTime{}, err
	}
	before = m.Watermark
	if changed, err := m.ResetWatermark(to); err != nil || !changed {
		return before, err
	}
	data, err := m.Encode()
	if err != nil {
		return before, err
	}
	return before, s.Put(ctx, ManifestName, data, version)
}

// ResetWatermark sets the manifest's watermark back, and tells whether it was another one. It
// is an ErrUsage to set a later watermark, because no run would read the results in between.
func (m *Manifest) ResetWatermark(to WallTime) (changed bool, err error) {
	switch before := m.Watermark; {
	case to.Equal(before.Time):
		return false, nil
	case !to.IsZero() && (before.IsZero() || to.After(before.Time)):
		known := "it has no watermark yet, so that the results before that time would be missing"
		if !before.IsZero() {
			known = "results were read only up to " + before.String() + ", so that those after it would be missing"
		}
		return false, &Error{
			Kind: ErrUsage, Op: "set", Path: "the watermark of the dataset to " + to.String(), Remedy: "give an earlier time, or leave out --watermark, so that the next run begins like the first",
			Err: errors.New(known),
		}
	}
	if m.Watermark = Wall(to.Time); to.IsZero() {
		m.Changes = nil
	}
	return true, nil
}
