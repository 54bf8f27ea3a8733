package output

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
)

// reuse compares the run's new parts with those that they replace, to reuse
// equal ones. It never reuses a part that does not match its manifest: one of another
// size, or with other bytes. A full run reuses none, and removes objects that no
// manifest lists.
func (o *dataset) reuse(ctx context.Context, old []load.Part, fresh []load.PreparedPart) (load.Reuse, error) {
	if o.job.Full {
		r := load.ReuseParts(nil, fresh)
		for _, p := range old {
			r.Superseded = append(r.Superseded, p.Path)
		}
		r.Superseded = append(r.Superseded, load.NamesOf(o.inventory.Unlisted)...)
		return r, nil
	}
	sound, damaged := o.inventory.Sound(old)
	r := load.ReuseParts(sound, fresh)
	changed, err := o.changedBytes(ctx, sound, r.Parts)
	if err != nil {
		return r, err
	}
	if len(changed) > 0 {
		r = load.ReuseParts(slices.DeleteFunc(sound, func(p load.Part) bool { return changed[p.Path] }), fresh)
		for path := range changed {
			r.Superseded = append(r.Superseded, path)
		}
		slices.Sort(r.Superseded)
	}
	for _, p := range damaged {
		r.Superseded = append(r.Superseded, p.Path)
	}
	return r, nil
}

// changedBytes returns the paths of parts of sound that are among parts and whose bytes
// are not those of the manifest. It also notes whether one of them lacks its set of ids.
func (o *dataset) changedBytes(ctx context.Context, sound, parts []load.Part) (map[string]bool, error) {
	there := make(map[string]bool, len(sound))
	for _, p := range sound {
		there[p.Path] = true
	}
	differs, lacks := make([]bool, len(parts)), make([]bool, len(parts))
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(load.SideBySide)
	for i, p := range parts {
		if !there[p.Path] {
			continue
		}
		group.Go(func() (err error) {
			if differs[i], err = bytesDiffer(inGroup, o.dest, p); err != nil || p.IDs == "" {
				return err
			}
			_, err = o.idsOf(inGroup, p)
			lacks[i] = errors.Is(err, load.ErrIDs)
			if lacks[i] {
				err = nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	o.lacks = o.lacks || slices.Contains(lacks, true)
	changed := map[string]bool{}
	for i, p := range parts {
		if differs[i] {
			changed[p.Path] = true
		}
	}
	return changed, nil
}

// bytesDiffer tells whether a part's SHA-256 is not the manifest's.
func bytesDiffer(ctx context.Context, from load.Opener, p load.Part) (bool, error) {
	_, sum, err := load.Digest(ctx, from, p.Path)
	if errors.Is(err, load.ErrNotExist) {
		return true, nil
	}
	return sum != p.SHA256, err
}
