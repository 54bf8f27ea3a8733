package load

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// idSets lists the id sets of the dataset that is cleaned; a file has none.
func (c *cleaning) idSets(ctx context.Context) ([]string, error) {
	if c.scope != "" {
		return nil, nil
	}
	objects, err := c.d.List(ctx, idsFolder+"/")
	return slices.DeleteFunc(NamesOf(objects), func(name string) bool { return !isIDsName(name) }), err
}

// orphans gives those of the id sets that no part has and no recorded commit
// will give one. The sets were listed before the holders of leases and the
// records of commits were read, and the manifest is read last: a set that was
// there is one of a run that still holds the lease, or of one that recorded its
// commit, ended or died before that was asked.
func (c *cleaning) orphans(ctx context.Context, f *finds, sets []string) ([]Leftover, error) {
	held := func(h ScopedHolder) bool { return h.Scope == c.scope }
	if len(sets) == 0 || slices.ContainsFunc(f.holders, held) {
		return nil, nil
	}
	used, err := idsInUse(ctx, c.d, slices.Collect(maps.Values(f.intents))...)
	if _, damaged := errors.AsType[*ManifestError](err); damaged {
		return nil, nil // any of them may be needed
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
