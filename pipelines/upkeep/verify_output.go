package upkeep

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/schemas"
)

// check compares the output at dest with its manifest. file is the name of a single file, "" for a
// dataset. The error is of what could not be read, such as a store that does not answer. What is
// damaged stands in the returned Verified, also a missing manifest. The caller calls its finish.
func check(ctx context.Context, dest load.Destination, path, file string) (*Verified, error) {
	name := load.ManifestName
	if file != "" {
		name = load.FileManifestName(file)
	}
	o := &Verified{Path: path, Problems: []Problem{}, Notes: []string{}, single: file != ""}
	m, version, err := load.ReadManifest(ctx, dest, name)
	if damaged, is := errors.AsType[*load.ManifestError](err); is {
		o.about(byFullRun, "%v", damaged)
		return o, nil
	}
	if errors.Is(err, load.ErrNotExist) {
		return o, o.lacksManifest(ctx, dest, name)
	}
	if err == nil {
		o.of(m)
		if err = o.checkParts(ctx, dest); err == nil {
			err = o.committed(ctx, dest, file)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, now, err := dest.Get(ctx, name); err != nil || now != version {
		return nil, fmt.Errorf("%s: a run wrote there during this check; run the same command again: %w", path, cmp.Or(err, load.ErrConflict))
	}
	return o, nil
}

// of sets what the manifest m tells of the output: form, pipeline, run, parts and range.
func (o *Verified) of(m *load.Manifest) {
	o.Manifest, o.Form, o.Pipeline, o.RunID, o.Parts, o.Rejected = m, m.Form, m.Pipeline, m.RunID, len(m.Parts), m.Rejected
	o.Covers, o.Undated = m.Covers()
}

// lacksManifest adds the problem of an output that has no manifest, by whether parts lie there.
// name is the missing manifest's name.
func (o *Verified) lacksManifest(ctx context.Context, dest load.Destination, name string) error {
	var there load.Inventory
	var err error
	if !o.single {
		there, err = load.TakeInventory(ctx, dest, nil)
	}
	if o.nothing = len(there.Unlisted) == 0; o.nothing {
		o.about(byAnyRun, "no run has written here yet: there is no %s", name)
	} else {
		o.about(byFullRun, "%s is missing, although there are parts: it was removed", name)
	}
	return err
}

// checkParts checks all parts of the manifest, and that no result is in two parts.
func (o *Verified) checkParts(ctx context.Context, dest load.Destination) error {
	sets := make([]idset.Set, len(o.Manifest.Parts))
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(load.SideBySide)
	for i, p := range o.Manifest.Parts {
		o.Bytes += p.Bytes
		group.Go(func() (err error) {
			sets[i], err = o.part(inGroup, dest, p)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, twice := idset.Overlap(sets...)
	seen := idset.Set{} // ids that are in several parts and in one of those before
	for i, p := range o.Manifest.Parts {
		own := sets[i].Intersect(twice)
		if both := seen.Intersect(own); !both.IsEmpty() {
			o.add("twice", p, "%d of its results are also in other parts, such as result %d", both.Len(), both.Min())
		}
		seen = seen.Union(own)
	}
	return nil
}

// part checks a part of the manifest, its dead letters and its set of ids. It returns the ids of
// the part's results, nil if the part has no rows or the ids are not known.
func (o *Verified) part(ctx context.Context, dest load.Destination, p load.Part) (ids idset.Set, err error) {
	n, sum, err := load.Digest(ctx, dest, p.Path)
	switch {
	case errors.Is(err, load.ErrNotExist):
		o.add("missing", p, "it is missing")
	case err != nil:
		return nil, err
	case n != p.Bytes:
		o.add("length", p, "it has %d bytes instead of %d", n, p.Bytes)
	case sum != p.SHA256:
		o.add("sha256", p, "its SHA-256 differs from the manifest's: the file was changed")
	default:
		o.mu.Lock()
		o.Rows += p.Rows
		o.mu.Unlock()
	}
	if p.Letters != "" {
		data, _, err := dest.Get(ctx, load.RejectsName(p.Letters))
		if err != nil && !errors.Is(err, load.ErrNotExist) {
			return nil, err
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != p.Letters {
			o.add("letters", p, "its dead letters %s are missing or damaged", load.RejectsName(p.Letters))
		}
	}
	if o.single || p.Rows == 0 {
		return nil, nil //nolint:nilnil // a single file keeps no ids
	}
	ids, err = load.PartIDs(ctx, dest, p, isChild(o.Manifest))
	if errors.Is(err, idset.ErrDamaged) {
		o.add("ids", p, "%v", err)
		return nil, nil //nolint:nilnil // the problem was added
	}
	return ids, err
}

// committed checks that no commit is half done at the output, that no part lies there that the
// manifest does not list, and that _SUCCESS names the run that the manifest names. file is the
// name of a single file, "" for a dataset.
func (o *Verified) committed(ctx context.Context, dest load.Destination, file string) error {
	var there load.Inventory
	var err error
	if !o.single { // listed before Pending is asked: what a commit writes meanwhile is not unlisted
		there, err = load.TakeInventory(ctx, dest, o.Manifest)
	}
	if err != nil {
		return err
	}
	run, err := load.Pending(ctx, dest, file)
	if err != nil {
		return err
	}
	if run != "" {
		o.about(byAnyRun, "run %s is putting its results in place, or was stopped meanwhile; the next run finishes that", run)
		return nil
	}
	if o.single {
		return nil
	}
	for _, extra := range there.Unlisted {
		o.Problems, o.unlisted = append(o.Problems, Problem{Kind: "unlisted", Part: extra.Name, Text: "no manifest lists it, but programs that read the dataset may take it for a part"}), true
	}
	mark, _, err := dest.Get(ctx, load.SuccessName)
	if errors.Is(err, load.ErrNotExist) {
		o.about(byAnyRun, "%s is missing, so programs that wait for it take the dataset for incomplete", load.SuccessName)
		return nil
	}
	if marked, _, _ := bytes.Cut(mark, []byte("\n")); err == nil && string(marked) != o.RunID {
		o.about(byFullRun, "%s names the run %q, but the manifest names the run %s", load.SuccessName, marked, o.RunID)
	}
	return err
}

// isChild tells by its manifest whether an output is a child output, whose rows are uploaded files
// or the elements of a list. Behind the result's id, the first has columns of files, and the second
// two columns from one source: the element's position and the element.
func isChild(m *load.Manifest) bool {
	if len(m.Schema) < 3 {
		return false
	}
	from, err := schemas.ParseSource(m.Schema[1].From)
	return err == nil && from.Kind == schemas.FromFile || m.Schema[1].From == m.Schema[2].From
}
