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
	idsExtension = ".roaring"
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

// besideKind tells what an object beside the parts is, by a name that IDsName or
// RejectsName returns. It is "" for any other name.
func besideKind(name string) LeftoverKind {
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
func IsRejectsName(name string) bool { return besideKind(name) == OrphanedLetters }

// listBeside lists the objects beside the parts of a dataset.
func listBeside(ctx context.Context, s Store) (names []string, err error) {
	for _, folder := range []string{idsFolder, RejectsFolder} {
		objects, err := s.List(ctx, folder+"/")
		if err != nil {
			return nil, err
		}
		names = append(names, NamesOf(objects)...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return besideKind(name) == "" }), nil
}

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

// beside returns the names of the objects beside the manifest's parts, none if m is nil.
func (m *Manifest) beside() map[string]bool {
	names := map[string]bool{}
	if m == nil {
		return names
	}
	for _, p := range m.Parts {
		for _, name := range p.beside() {
			names[name] = true
		}
	}
	return names
}

// ownBeside returns the names of the objects beside the commit's new parts. It also
// asks the manifest, because the record of a commit holds no such objects.
func (c *DatasetCommit) ownBeside() map[string]bool {
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
func (c *DatasetCommit) checkBeside() error {
	listed := c.Manifest.beside()
	for _, o := range c.Beside {
		if !listed[o.Name] {
			return fmt.Errorf("the manifest lists no part that has %s beside it", o.Name)
		}
	}
	for _, name := range c.SupersededBeside {
		if besideKind(name) == "" {
			return &NameError{Name: name, Problem: "it is neither an id set nor dead letters, which the commit should remove"}
		}
	}
	return nil
}

// needless returns the names of all objects that the commit removes after it wrote
// its manifest. What a part of the manifest shares is not among them.
func (c *DatasetCommit) needless() []string {
	listed := c.Manifest.beside()
	names := slices.DeleteFunc(slices.Clone(c.SupersededBeside), func(name string) bool { return listed[name] })
	return slices.Concat(c.Superseded, names)
}

// besideInUse returns the names of the objects beside parts that the current manifest or
// the recorded commit needs. recorded is nil for none. A commit needs those of its
// manifest and those that it will remove. The caller reads the record first. If the
// commit ends meanwhile, the manifest lists its parts, so nothing is missed.
func besideInUse(ctx context.Context, s Store, recorded *DatasetCommit) (map[string]bool, error) {
	current, _, err := ReadManifest(ctx, s, ManifestName)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return nil, err
	}
	names := current.beside()
	if recorded != nil {
		maps.Copy(names, recorded.Manifest.beside())
		for _, name := range recorded.SupersededBeside {
			names[name] = true
		}
	}
	return names, nil
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
	err := eachAt(ctx, r, StepBeside, r.commit.Beside, write)
	if err != nil {
		r.withdrawBeside(ctx)
	}
	return err
}

// withdrawBeside tries to remove what a commit that was not recorded wrote beside its
// parts. Errors are ignored, because Clean removes what stays. What another commit or
// the manifest needs stays. If either cannot be read, all stays.
func (r *committing) withdrawBeside(ctx context.Context) {
	if r.hooked || len(r.commit.Beside) == 0 {
		return
	}
	i, err := readIntent(ctx, r.d, intentPath(""))
	if err != nil && !errors.Is(err, ErrNotExist) {
		return
	}
	if used, err := besideInUse(ctx, r.d, i.Dataset); err == nil {
		_ = r.removeBeside(ctx, used)
	}
}

// removeBeside removes what the commit wrote beside its parts, except what is in used.
func (r *committing) removeBeside(ctx context.Context, used map[string]bool) error {
	own := r.commit.ownBeside()
	maps.DeleteFunc(own, func(name string, _ bool) bool { return used[name] })
	return each(ctx, slices.Collect(maps.Keys(own)), r.d.Delete)
}
