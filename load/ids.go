package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// IDSet is an id set that a commit writes. Encode returns its bytes. It is called just
// before they are written, because all sets together take two bytes for each result.
type IDSet struct {
	Name   string
	Encode func() ([]byte, error)
}

// IDsName is the name of the id set that has this SHA-256, given in hex.
func IDsName(sha256 string) string { return idsFolder + "/" + sha256 + idsExtension }

// isIDsName tells whether a name has the form that IDsName returns.
func isIDsName(name string) bool {
	digest, inFolder := strings.CutPrefix(name, idsFolder+"/")
	digest, isSet := strings.CutSuffix(digest, idsExtension)
	return inFolder && isSet && isHex(digest, sha256Digits)
}

// idNames returns the names of the id sets of the manifest's parts, none if m is nil.
func (m *Manifest) idNames() map[string]bool {
	names := map[string]bool{}
	if m == nil {
		return names
	}
	for _, p := range m.Parts {
		if p.IDs != "" {
			names[IDsName(p.IDs)] = true
		}
	}
	return names
}

// ownIDs returns the names of the id sets of the commit's new parts. It also
// asks the manifest, because the record of a commit holds no id sets.
func (c *DatasetCommit) ownIDs() map[string]bool {
	own := map[string]bool{}
	for _, o := range c.IDs {
		own[o.Name] = true
	}
	for _, p := range c.Manifest.Parts {
		fresh := func(n Prepared) bool { return n.Name == p.Path }
		if p.IDs != "" && slices.ContainsFunc(c.New, fresh) {
			own[IDsName(p.IDs)] = true
		}
	}
	return own
}

// checkIDs checks that the manifest lists the commit's id sets, and that
// SupersededIDs names nothing but id sets.
func (c *DatasetCommit) checkIDs() error {
	listed := c.Manifest.idNames()
	for _, o := range c.IDs {
		if !listed[o.Name] {
			return fmt.Errorf("the manifest lists no part whose id set would be %s", o.Name)
		}
	}
	for _, name := range c.SupersededIDs {
		if !isIDsName(name) {
			return &NameError{Name: name, Problem: "it is no id set, which the commit should remove"}
		}
	}
	return nil
}

// needless returns the names of all objects that the commit removes after it wrote
// its manifest. An id set that a part of the manifest shares is not among them.
func (c *DatasetCommit) needless() []string {
	listed := c.Manifest.idNames()
	sets := slices.DeleteFunc(slices.Clone(c.SupersededIDs), func(name string) bool { return listed[name] })
	return slices.Concat(c.Superseded, sets)
}

// idsInUse returns the names of the id sets that the current manifest or the
// recorded commit needs. recorded is nil for none. A commit needs the id sets of
// its manifest and those that it will remove. The caller reads the record first. If
// the commit ends meanwhile, the manifest lists its parts, so no set is missed.
func idsInUse(ctx context.Context, s Store, recorded *DatasetCommit) (map[string]bool, error) {
	current, _, err := ReadManifest(ctx, s, ManifestName)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return nil, err
	}
	names := current.idNames()
	if recorded != nil {
		maps.Copy(names, recorded.Manifest.idNames())
		for _, name := range recorded.SupersededIDs {
			names[name] = true
		}
	}
	return names, nil
}

// writeIDs writes the id sets of the new parts before anything refers to them,
// and removes them again if that fails. If another process recorded the commit,
// it has written the sets already.
func (r *committing) writeIDs(ctx context.Context) error {
	write := func(ctx context.Context, o IDSet) error {
		data, err := o.Encode()
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return fmt.Errorf("the id set %s is empty: not even that of no ids is", o.Name)
		}
		return r.d.Put(ctx, o.Name, data, AnyVersion)
	}
	err := eachAt(ctx, r, StepIDs, r.commit.IDs, write)
	if err != nil {
		r.withdrawIDs(ctx)
	}
	return err
}

// withdrawIDs tries to remove the id sets of a commit that was not recorded.
// Errors are ignored, because Clean removes what stays. Sets that another
// commit or the manifest needs stay. If either cannot be read, all sets stay.
func (r *committing) withdrawIDs(ctx context.Context) {
	if r.hooked || len(r.commit.IDs) == 0 {
		return
	}
	i, err := readIntent(ctx, r.d, intentPath(""))
	if err != nil && !errors.Is(err, ErrNotExist) {
		return
	}
	if used, err := idsInUse(ctx, r.d, i.Dataset); err == nil {
		_ = r.removeIDs(ctx, used)
	}
}

// removeIDs removes the commit's own id sets, except those in used.
func (r *committing) removeIDs(ctx context.Context, used map[string]bool) error {
	own := r.commit.ownIDs()
	maps.DeleteFunc(own, func(name string, _ bool) bool { return used[name] })
	return each(ctx, slices.Collect(maps.Keys(own)), r.d.Delete)
}
