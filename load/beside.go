package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What belongs to a part lies in folders beside the manifest and is no data: the set
// of the ids of its results, by which later runs find results that moved to another
// window, and its dead letters. Each object is named by its own SHA-256, which the
// manifest holds for the part, so equal ones share one object.
const (
	idsFolder    = "_ids"
	idsExtension = ".ids"
)

// PartObject is an id set, or dead letters, that a commit writes. Encode returns its
// bytes. It is called just before they are written, because all sets together take two
// bytes for each result.
type PartObject struct {
	Name   string
	Encode func() ([]byte, error)
}

// IDsName is the name of the id set that has this SHA-256, given in hex.
func IDsName(sha256 string) string { return idsFolder + "/" + sha256 + idsExtension }

// strayKind tells what an object of a dataset is if nothing needs it, by a name that PartName,
// IDsName or RejectsName returns. It is "" for any other name.
func strayKind(name string) LeftoverKind {
	if _, err := ParsePartName(name); err == nil {
		return UnlistedPart
	}
	folder, file, _ := strings.Cut(name, "/")
	digest, _, _ := strings.Cut(file, ".")
	switch {
	case !isSHA256(digest):
	case folder == idsFolder && file == digest+idsExtension:
		return OrphanedIDs
	case folder == RejectsFolder && file == digest+rejectsExtension:
		return OrphanedLetters
	}
	return ""
}

// IsRejectsName tells whether a name is one that RejectsName returns.
func IsRejectsName(name string) bool { return strayKind(name) == OrphanedLetters }

// beside returns the names of the objects beside the part.
func (p Part) beside() (names []string) {
	if p.IDs != "" {
		names = append(names, IDsName(p.IDs))
	}
	if p.Letters != "" {
		names = append(names, RejectsName(p.Letters))
	}
	return names
}

// names returns the names of the manifest's parts and of the objects beside them, none if m
// is nil.
func (m *Manifest) names() map[string]bool {
	names := map[string]bool{}
	if m == nil {
		return names
	}
	for _, p := range m.Parts {
		names[p.Path] = true
		for _, name := range p.beside() {
			names[name] = true
		}
	}
	return names
}

// ownBeside returns the names of the objects beside the commit's new parts. It also
// asks the manifest, because the record of a commit holds no such objects.
func (c *Commit) ownBeside() map[string]bool {
	own := map[string]bool{}
	for _, o := range c.Beside {
		own[o.Name] = true
	}
	for _, p := range c.Manifest.Parts {
		if !slices.ContainsFunc(c.New, func(n Prepared) bool { return n.Name == p.Path }) {
			continue
		}
		for _, name := range p.beside() {
			own[name] = true
		}
	}
	return own
}

// checkBeside checks that the manifest lists what the commit writes beside its parts,
// and that SupersededBeside names nothing else than such objects.
func (c *Commit) checkBeside() error {
	listed := c.Manifest.names()
	for _, o := range c.Beside {
		if !listed[o.Name] {
			return fmt.Errorf("the manifest lists no part that has %s beside it", o.Name)
		}
	}
	for _, name := range c.SupersededBeside {
		if kind := strayKind(name); kind != OrphanedIDs && kind != OrphanedLetters {
			return &NameError{Name: name, Problem: "it is neither an id set nor dead letters, which the commit should remove"}
		}
	}
	return nil
}

// needless returns the names of all objects that the commit removes after it wrote
// its manifest. What a part of the manifest shares is not among them.
func (c *Commit) needless() []string {
	listed := c.Manifest.names()
	names := slices.DeleteFunc(slices.Clone(c.SupersededBeside), func(name string) bool { return listed[name] })
	return slices.Concat(c.Superseded, names)
}

// needed returns the names of the parts, and of the objects beside them, that the current
// manifest or the recorded commit needs, and the manifest. Both may be nil. A commit needs what
// its manifest names and what it will remove. The caller reads the record first. If the
// commit ends meanwhile, the manifest lists its parts, so nothing is missed.
func needed(ctx context.Context, s Store, recorded *Commit) (map[string]bool, *Manifest, error) {
	current, _, err := ReadManifest(ctx, s, ManifestName)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return nil, nil, err
	}
	names := current.names()
	if recorded != nil {
		maps.Copy(names, recorded.Manifest.names())
		for _, name := range slices.Concat(recorded.Superseded, recorded.SupersededBeside) {
			names[name] = true
		}
	}
	return names, current, nil
}

// writeBeside writes what lies beside the parts before anything refers to it, and
// removes it again if that fails. If another process recorded the commit, it has
// written the objects already.
func (r *committing) writeBeside(ctx context.Context) error {
	write := func(ctx context.Context, o PartObject) error {
		data, err := o.Encode()
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return fmt.Errorf("%s is empty: not even the set of no ids is", o.Name)
		}
		return r.d.Put(ctx, o.Name, data, AnyVersion)
	}
	err := eachAt(ctx, r, StepBeside, r.Beside, write)
	if err != nil {
		r.withdrawBeside(ctx)
	}
	return err
}

// withdrawBeside tries to remove what a commit that was not recorded wrote beside its
// parts. Errors are ignored, because Clean removes what stays. What another commit or
// the manifest needs stays. If either cannot be read, all stays.
func (r *committing) withdrawBeside(ctx context.Context) {
	if r.hooked || len(r.Beside) == 0 {
		return
	}
	recorded, err := readRecord(ctx, r.d, recordName(""))
	if err != nil {
		return
	}
	if used, _, err := needed(ctx, r.d, recorded); err == nil {
		_ = r.removeBeside(ctx, used)
	}
}

// removeBeside removes what the commit wrote beside its parts, except what is in used.
func (r *committing) removeBeside(ctx context.Context, used map[string]bool) error {
	own := r.ownBeside()
	maps.DeleteFunc(own, func(name string, _ bool) bool { return used[name] })
	return each(ctx, slices.Collect(maps.Keys(own)), r.d.Delete)
}
