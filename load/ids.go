package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Id sets lie beside a dataset's manifest: the ids of the results of each
// part, for runs to come that look for results which moved to another window.
// They are no data. A set is named by its own checksum, which the manifest says
// of each part: equal sets are one, so a name never means two things, whoever
// wrote it.
const (
	idsFolder    = "_ids"
	idsExtension = ".roaring"
)

// IDsName is where the id set lies that has this SHA-256, in hex.
func IDsName(sha256 string) string { return idsFolder + "/" + sha256 + idsExtension }

// isIDsName tells whether a name is one that IDsName gives.
func isIDsName(name string) bool {
	digest, inFolder := strings.CutPrefix(name, idsFolder+"/")
	digest, isSet := strings.CutSuffix(digest, idsExtension)
	return inFolder && isSet && isHex(digest, sha256Digits)
}

// idsOf adds the names of the sets that the manifest's parts have; without a
// manifest there are none.
func (m *Manifest) idsOf(names map[string]bool) {
	if m == nil {
		return
	}
	for _, p := range m.Parts {
		if p.IDs != "" {
			names[IDsName(p.IDs)] = true
		}
	}
}

// ownIDs are the names of the sets of the commit's new parts.
func (c DatasetCommit) ownIDs() []string {
	fresh := make(map[string]bool, len(c.New))
	for _, p := range c.New {
		fresh[p.Name] = true
	}
	var names []string
	for _, p := range c.Manifest.Parts {
		if fresh[p.Path] && p.IDs != "" {
			names = append(names, IDsName(p.IDs))
		}
	}
	return names
}

// checkIDs tells whether the commit's id sets are those of its manifest, and
// what it removes are id sets.
func (c DatasetCommit) checkIDs() error {
	listed := map[string]bool{}
	c.Manifest.idsOf(listed)
	for _, o := range c.IDs {
		switch {
		case !listed[o.Name]:
			return fmt.Errorf("the manifest lists no part whose id set would be %s", o.Name)
		case len(o.Data) == 0:
			return fmt.Errorf("the id set %s is empty: not even that of no ids is", o.Name)
		}
	}
	for _, name := range c.SupersededIDs {
		if !isIDsName(name) {
			return &NameError{Name: name, Problem: "it is no id set, which the commit should remove"}
		}
	}
	return nil
}

// needless are the names of everything that the commit removes once its
// manifest is written. A superseded part may have held the same as one that is
// listed: their set stays.
func (c DatasetCommit) needless() []string {
	listed := map[string]bool{}
	c.Manifest.idsOf(listed)
	names := append([]string{}, c.Superseded...)
	for _, name := range c.SupersededIDs {
		if !listed[name] {
			names = append(names, name)
		}
	}
	return names
}

// ids adds the names of the sets that a recorded commit is about: those of the
// parts that it will list, and those that it will remove itself.
func (i intent) ids(names map[string]bool) {
	if i.Dataset == nil {
		return
	}
	i.Dataset.Manifest.idsOf(names)
	for _, name := range i.Dataset.SupersededIDs {
		names[name] = true
	}
}

// idsInUse gives the names of the id sets that recorded commits or the current
// manifest need. Whoever asks read the records before: a commit that has ended
// since then has its parts in the manifest that is read now, so no set is
// missed in between.
func idsInUse(ctx context.Context, s Store, recorded ...intent) (map[string]bool, error) {
	names := map[string]bool{}
	for _, i := range recorded {
		i.ids(names)
	}
	current, _, err := ReadManifest(ctx, s, ManifestName)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return nil, err
	}
	current.idsOf(names)
	return names, nil
}

// writeIDs writes the id sets of the new parts, before anything refers to
// them. Where that fails they are removed again. A commit that another process
// recorded comes without them: they are there.
func (r *committing) writeIDs(ctx context.Context) error {
	write := func(ctx context.Context, i int) error { return r.d.Put(ctx, r.ids[i].Name, r.ids[i].Data, AnyVersion) }
	err := r.each(ctx, StepIDs, len(r.ids), write)
	if err != nil {
		r.withdrawIDs(ctx)
	}
	return err
}

// withdrawIDs removes the id sets of a commit that was not recorded, as well
// as may be: one that stays harms nobody, and Clean removes it. Sets that
// somebody may need stay, so where that cannot be told all of them do.
func (r *committing) withdrawIDs(ctx context.Context) {
	if r.hooked || len(r.ids) == 0 {
		return
	}
	i, err := readIntent(ctx, r.d, r.intent)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return
	}
	if used, err := idsInUse(ctx, r.d, i); err == nil {
		_ = r.removeIDs(ctx, used)
	}
}

// removeIDs removes the id sets of the commit's own parts, but for those that
// are used. A commit that another process recorded tells them by its parts.
func (r *committing) removeIDs(ctx context.Context, used map[string]bool) error {
	if r.manifest != ManifestName { // a single file has none
		return nil
	}
	own := map[string]bool{}
	for _, name := range r.ownIDs {
		own[name] = true
	}
	for _, o := range r.ids {
		own[o.Name] = true
	}
	var names []string
	for name := range own {
		if !used[name] {
			names = append(names, name)
		}
	}
	return deleteNames(ctx, r.d, names)
}
