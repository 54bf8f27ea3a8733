package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/formetl/formetl/load/idset"
)

// Inventory is the difference between the parts that lie at a dataset and those
// that its manifest lists.
type Inventory struct {
	// Damaged are the listed parts that are missing or have another size than
	// the manifest says.
	Damaged []DamagedPart
	// Unlisted are the objects that are named like parts but are not in the manifest,
	// sorted by name. A reader that finds parts by a glob reads them as data.
	Unlisted []Object
}

// DamagedPart is a listed part that is missing or has the wrong size.
type DamagedPart struct {
	Part
	Missing bool
	Now     int64 // the part's size in bytes now, if it is not missing
}

// String names the part and says whether it is missing or has the wrong size.
func (p DamagedPart) String() string {
	if p.Missing {
		return p.Path + " (missing)"
	}
	return fmt.Sprintf("%s (%d bytes instead of %d)", p.Path, p.Now, p.Bytes)
}

// TakeInventory compares the parts that lie at a dataset with its manifest m, which is nil for
// none. It lists the dataset's objects and reads no part. The caller must have finished a
// recorded commit. It must hold the lease if other runs may write meanwhile.
func TakeInventory(ctx context.Context, s Store, m *Manifest) (i Inventory, err error) {
	objects, err := listed(ctx, s, dtPrefix, partPrefix)
	if err != nil {
		return i, err
	}
	there := map[string]Object{}
	for _, o := range objects {
		if strayKind(o.Name) == UnlistedPart {
			there[o.Name] = o
		}
	}
	if m != nil {
		for _, p := range m.Parts {
			o, is := there[p.Path]
			if strayKind(p.Path) == UnlistedPart && (!is || o.Bytes != p.Bytes) { // others are not listed
				i.Damaged = append(i.Damaged, DamagedPart{Part: p, Missing: !is, Now: o.Bytes})
			}
			delete(there, p.Path)
		}
	}
	i.Unlisted = slices.SortedFunc(maps.Values(there), func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return i, nil
}

// Sound returns those of parts that the inventory did not find damaged.
func (i Inventory) Sound(parts []Part) []Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p Part) bool {
		return slices.ContainsFunc(i.Damaged, func(d DamagedPart) bool { return d.Path == p.Path })
	})
}

// PartIDs reads the set of the ids of a part that has rows. The error wraps idset.ErrDamaged
// if the set is missing, or if it belongs to another part. exploded tells that rows are the
// elements of a list, of which a result may have any number.
func PartIDs(ctx context.Context, s Store, p Part, exploded bool) (idset.Set, error) {
	if p.IDs == "" {
		return nil, fmt.Errorf("%w: it is missing", idset.ErrDamaged)
	}
	data, _, err := s.Get(ctx, IDsName(p.IDs))
	if errors.Is(err, ErrNotExist) {
		return nil, fmt.Errorf("%w: it is missing", idset.ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	if idset.Sum(data) != p.IDs {
		return nil, idset.ErrDamaged
	}
	ids, err := idset.Decode(data)
	if err != nil {
		return nil, err
	}
	if n := int64(ids.Len()); n == 0 || n != p.Rows && !exploded || ids.Min() != p.MinID || ids.Max() != p.MaxID {
		return nil, fmt.Errorf("%w: it belongs to another part", idset.ErrDamaged)
	}
	return ids, nil
}
