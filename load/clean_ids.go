package load

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// idSets lists the id sets of the dataset. A single file has none.
func (c *cleaning) idSets(ctx context.Context) ([]string, error) {
	if c.scope != "" {
		return nil, nil
	}
	objects, err := c.d.List(ctx, idsFolder+"/")
	return slices.DeleteFunc(NamesOf(objects), func(name string) bool { return !isIDsName(name) }), err
}

// orphans gives the id sets that neither a listed part nor a recorded commit
// needs. The caller has listed the sets first and then read the holders of
// leases and the records of commits. The manifest is read last. In this order
// no set of a live run is taken for an orphan.
func (c *cleaning) orphans(ctx context.Context, f *finds, sets []string) ([]Leftover, error) {
	held := func(h ScopedHolder) bool { return h.Scope == c.scope }
	if len(sets) == 0 || slices.ContainsFunc(f.holders, held) {
		return nil, nil
	}
	used, err := idsInUse(ctx, c.d, slices.Collect(maps.Values(f.intents))...)
	if _, damaged := errors.AsType[*ManifestError](err); damaged {
		return nil, nil // the manifest cannot be read, so any set may be needed
	}
	if err != nil {
		return nil, err
	}
	var found []Leftover
	for _, name := range sets {
		if !used[name] {
			found = append(found, Leftover{Kind: OrphanedIDs, Path: where(c.d, name), Bytes: -1, Ref: name})
		}
	}
	return found, nil
}
