package load

import (
	"context"
	"errors"
	"slices"
)

// findUnlisted finds the parts that neither the dataset's manifest nor a
// recorded commit lists. A damaged manifest is an error only if these parts are
// to be removed.
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
	var pending []string // the parts that a recorded commit adds and removes
	if commit := f.intents[intentPath("")].Dataset; commit != nil {
		pending = slices.Clone(commit.Superseded)
		for _, p := range commit.New {
			pending = append(pending, p.Name)
		}
	}
	for _, o := range inventory.Unlisted {
		l := Leftover{Kind: UnlistedPart, Name: o.Name, Path: where(c.d, o.Name), Bytes: o.Bytes, Ref: o.Name}
		switch {
		case slices.Contains(pending, o.Name): // its commit is not finished
		case c.unlisted:
			f.dead = append(f.dead, l)
		default:
			f.kept = append(f.kept, Kept{Leftover: l, Why: "no manifest lists it, and --unlisted removes it"})
		}
	}
	return nil
}

// mark writes _SUCCESS again after unlisted parts were removed. Its bytes differ from
// before, so that readers notice. A dataset without a manifest gets no _SUCCESS.
func (c *cleaning) mark(ctx context.Context) error {
	m, _, err := ReadManifest(ctx, c.d, ManifestName)
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.d.Put(ctx, SuccessName, []byte(m.RunID+"\ncleaned by "+c.self+"\n"), AnyVersion)
}

// beside lists the id sets and dead letters of the dataset. A single file has none.
func (c *cleaning) beside(ctx context.Context) ([]string, error) {
	if c.scope != "" {
		return nil, nil
	}
	return listBeside(ctx, c.d)
}

// lacksManifest tells whether parts lie at a dataset without a manifest, and stay there.
// The manifest may come back, from a backup for example, and then needs what is beside them.
func (c *cleaning) lacksManifest(ctx context.Context) (bool, error) {
	if c.unlisted {
		return false, nil
	}
	if _, _, err := ReadManifest(ctx, c.d, ManifestName); !errors.Is(err, ErrNotExist) {
		return false, err
	}
	inventory, err := TakeInventory(ctx, c.d, nil)
	return len(inventory.Unlisted) > 0, err
}

// orphans returns those of the id sets and dead letters that neither a listed part nor
// a recorded commit needs. The caller lists them before it reads holders and records, and
// orphans reads the manifest last. So nothing of a live run is taken for an orphan.
func (c *cleaning) orphans(ctx context.Context, f *finds, beside []string) ([]Leftover, error) {
	held := func(h ScopedHolder) bool { return h.Scope == c.scope }
	if len(beside) == 0 || slices.ContainsFunc(f.holders, held) {
		return nil, nil
	}
	used, err := besideInUse(ctx, c.d, f.intents[intentPath("")].Dataset)
	if _, damaged := errors.AsType[*ManifestError](err); damaged {
		return nil, nil // the manifest cannot be read, so anything may be needed
	}
	if err != nil {
		return nil, err
	}
	if bare, err := c.lacksManifest(ctx); bare || err != nil {
		return nil, err
	}
	var found []Leftover
	for _, name := range beside {
		if !used[name] {
			found = append(found, Leftover{Kind: besideKind(name), Path: where(c.d, name), Bytes: -1, Ref: name})
		}
	}
	return found, nil
}
