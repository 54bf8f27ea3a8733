package load

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// findUnlisted finds the parts that neither the dataset's manifest nor a
// recorded commit lists. If the manifest cannot be read, that is an error only
// for a caller who wants such parts removed.
func (c *cleaning) findUnlisted(ctx context.Context, f *finds) error {
	if c.scope != "" {
		return nil
	}
	m, _, err := ReadManifest(ctx, c.d, ManifestName)
	if _, damaged := errors.AsType[*ManifestError](err); damaged && !c.unlisted {
		return nil
	}
	if err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	inventory, err := TakeInventory(ctx, c.d, m)
	if err != nil {
		return err
	}
	pending := map[string]bool{}
	for _, i := range f.intents {
		for _, name := range i.parts() {
			pending[name] = true
		}
	}
	for _, o := range inventory.Unlisted {
		l := Leftover{Kind: UnlistedPart, Name: o.Name, Path: where(c.d, o.Name), Bytes: o.Bytes, Ref: o.Name}
		switch {
		case pending[o.Name]: // its commit is recorded and not finished
		case c.unlisted:
			f.dead = append(f.dead, l)
		default:
			f.kept = append(f.kept, Kept{Leftover: l, Why: "no manifest lists it, and --unlisted removes it"})
		}
	}
	return nil
}

// parts are the names of the parts that the commit adds and removes.
func (i intent) parts() []string {
	if i.Dataset == nil {
		return nil
	}
	names := slices.Clone(i.Dataset.Superseded)
	for _, p := range i.Dataset.New {
		names = append(names, p.Name)
	}
	return names
}

func hasUnlisted(dead []Leftover) bool {
	return slices.ContainsFunc(dead, func(l Leftover) bool { return l.Kind == UnlistedPart })
}

// unmark removes _SUCCESS before unlisted parts are removed, because readers
// that glob may be reading them.
func (c *cleaning) unmark(ctx context.Context, dead []Leftover) error {
	if !hasUnlisted(dead) {
		return nil
	}
	return c.d.Delete(ctx, SuccessName)
}

// mark writes _SUCCESS again after the removal. Its bytes differ from before,
// so that readers notice. A dataset without a manifest has no _SUCCESS.
func (c *cleaning) mark(ctx context.Context, dead []Leftover) error {
	if !hasUnlisted(dead) {
		return nil
	}
	m, _, err := ReadManifest(ctx, c.d, ManifestName)
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.d.Put(ctx, SuccessName, []byte(m.RunID+"\ncleaned by "+c.self.RunID+"\n"), AnyVersion)
}

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
