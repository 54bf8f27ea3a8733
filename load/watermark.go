package load

import (
	"context"
	"fmt"
)

// WatermarkError means that a new watermark is later than the present one. It
// is refused, because no run would read the results between the two.
type WatermarkError struct {
	Watermark WallTime // the present watermark, zero if there is none
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

// ExitCode is 64: only the flag --watermark gives such a time.
func (e *WatermarkError) ExitCode() int { return 64 }

// ResetWatermark sets the watermark of the dataset at s back to an earlier time. The
// zero time removes it, and the next incremental run begins like the first. What is
// known of changes is removed with it. With another time it stays, because changes
// from before that time would be lost otherwise. ResetWatermark
// returns the previous watermark. It changes nothing but the manifest.
//
// The caller holds the lease and has called Recover. The error wraps
// ErrConflict if a commit is recorded or someone else writes the manifest
// meanwhile. It wraps ErrNotExist if there is no manifest. It is a
// *ManifestError if the manifest is damaged, and a *WatermarkError if the time
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

// ResetWatermark sets the watermark back, and tells whether it was another one. The error is
// a *WatermarkError.
func (m *Manifest) ResetWatermark(to WallTime) (changed bool, err error) {
	switch before := m.Watermark; {
	case to.Equal(before.Time):
		return false, nil
	case !to.IsZero() && (before.IsZero() || to.After(before.Time)):
		return false, &WatermarkError{Watermark: before, To: to}
	}
	if m.Watermark = Wall(to.Time); to.IsZero() {
		m.Changes = nil
	}
	return true, nil
}
