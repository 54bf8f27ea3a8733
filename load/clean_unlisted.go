package load

import (
	"context"
	"errors"
	"slices"
)

// findUnlisted finds the parts of the dataset that is cleaned which neither its
// manifest lists nor a recorded commit is about to. Where the manifest cannot
// be read, none can be told: that fails who wants them removed.
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
		case pending[o.Name]: // its commit is still to be finished
		case c.unlisted:
			f.dead = append(f.dead, l)
		default:
			f.kept = append(f.kept, Kept{Leftover: l, Why: "no manifest lists it, and --unlisted removes it"})
		}
	}
	return nil
}

// parts are the names that the commit gives parts, and those that it removes.
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

// unmark removes _SUCCESS before unlisted parts are removed: what a reader that
// globs is reading goes away.
func (c *cleaning) unmark(ctx context.Context, dead []Leftover) error {
	if !hasUnlisted(dead) {
		return nil
	}
	return c.d.Delete(ctx, SuccessName)
}

// mark writes _SUCCESS again once unlisted parts are gone, with other bytes
// than before. A dataset without a manifest has none.
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
