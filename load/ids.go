package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// An id set holds the ids of the results of one part. Later runs use it to find
// results that moved to another window. Sets lie in a folder beside the
// manifest and are not data. A set is named by its own SHA-256, which the
// manifest holds for each part, so equal sets share one object.
const (
	idsFolder    = "_ids"
	idsExtension = ".roaring"
)

// IDsName is the name of the id set that has this SHA-256, given in hex.
func IDsName(sha256 string) string { return idsFolder + "/" + sha256 + idsExtension }

// isIDsName tells whether a name is one that IDsName gives.
func isIDsName(name string) bool {
	digest, inFolder := strings.CutPrefix(name, idsFolder+"/")
	digest, isSet := strings.CutSuffix(digest, idsExtension)
	return inFolder && isSet && isHex(digest, sha256Digits)
}

// idsOf adds the names of the id sets of the manifest's parts. m may be nil.
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

// ownIDs are the names of the id sets of the commit's new parts.
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

// checkIDs checks that the manifest lists the commit's id sets, and that
// SupersededIDs names nothing but id sets.
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

// needless are the names of all objects that the commit removes after its
// manifest is written. An id set that a listed part has too is not among them.
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

// ids adds the names of the id sets that a recorded commit still needs: those
// of the parts in its manifest, and those that it will remove itself.
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
// manifest need. The caller has read the records before. A commit that ended
// since then has its parts in the manifest that is read now, so no set is
// missed.
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

// writeIDs writes the id sets of the new parts before anything refers to them,
// and removes them again if that fails. A commit that another process recorded
// has none to write: that process has written them.
func (r *committing) writeIDs(ctx context.Context) error {
	write := func(ctx context.Context, i int) error { return r.d.Put(ctx, r.ids[i].Name, r.ids[i].Data, AnyVersion) }
	err := r.each(ctx, StepIDs, len(r.ids), write)
	if err != nil {
		r.withdrawIDs(ctx)
	}
	return err
}

// withdrawIDs tries to remove the id sets of a commit that was not recorded.
// Errors are ignored, because Clean removes what stays. Sets that another
// commit or the manifest needs stay; if that cannot be read, all sets stay.
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

// removeIDs removes the id sets of the commit's own parts, except those in
// used. A commit that another process recorded knows them only from its parts.
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
