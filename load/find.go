package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Found is what lies at one scope of a destination besides committed data.
type Found struct {
	Holder    *Holder    // of the scope's lease, nil if nobody holds it
	Pending   string     // run whose commit is recorded and not finished, "" for none
	Leftovers []Leftover // what Clean would remove
}

// Nothing tells whether Look found neither a holder, nor a recorded commit, nor leftovers.
func (f Found) Nothing() bool {
	return f.Holder == nil && f.Pending == "" && len(f.Leftovers) == 0
}

// Look returns what lies at d besides committed data, and changes nothing. It
// takes no lease, so a run that starts meanwhile is not refused. The scope is
// "" for a dataset and the file's name for a file.
func Look(ctx context.Context, d Destination, scope string) (Found, error) {
	c := &cleaning{d: d, scope: scope, self: nobody}
	f, err := c.find(ctx)
	if err != nil {
		return Found{}, err
	}
	return Found{Holder: f.holder(scope), Pending: f.records[recordName(scope)].run(), Leftovers: f.dead}, nil
}

// nobody stands for the caller of Look, who holds no lease. It is no run's id.
// It differs from "", which stands for the run of a lease that cannot be read.
const nobody = "-"

// finds is what a search of a destination found besides committed data.
type finds struct {
	dead    []Leftover
	kept    []Kept
	holders []ScopedHolder     // of leases, except that of the caller
	records map[string]*Commit // recorded commits, by object name
}

// holder returns who holds the lease of the scope, nil for nobody.
func (f *finds) holder(scope string) *Holder {
	for _, h := range f.holders {
		if h.Scope == scope {
			return &h.Holder
		}
	}
	return nil
}

// alive tells whether a run holds a lease.
func (f *finds) alive(run string) bool {
	return slices.ContainsFunc(f.holders, func(h ScopedHolder) bool { return h.RunID == run })
}

// find lists what lies at the scope and compares it with what leases, records and the manifest
// name, in the order that the comment of Clean describes.
func (c *cleaning) find(ctx context.Context) (*finds, error) {
	left, err := c.d.Leftovers(ctx)
	if err != nil {
		return nil, err
	}
	var ours []Object
	if c.scope == "" {
		if ours, err = listOurs(ctx, c.d, dtPrefix, partPrefix, idsFolder+"/", RejectsFolder+"/"); err != nil {
			return nil, err
		}
	}
	holders, err := c.d.Holders(ctx)
	if err != nil {
		return nil, err
	}
	own := func(h ScopedHolder) bool { return h.Scope == c.scope && h.RunID == c.self }
	f := &finds{holders: slices.DeleteFunc(holders, own)}
	if f.records, err = records(ctx, c.d); err != nil {
		return nil, err
	}
	for _, l := range left {
		if l.Run == "" && l.Kind == UnfinishedUpload && !c.isOwn(l.Name) {
			continue // another program's
		}
		if why := f.reason(l); why != "" {
			f.kept = append(f.kept, Kept{Leftover: l, Why: why})
		} else {
			f.dead = append(f.dead, l)
		}
	}
	return f, c.findStrays(ctx, f, ours)
}

// isOwn tells whether an object's final name belongs to the scope: it is the file itself, or a
// part of the dataset.
func (c *cleaning) isOwn(name string) bool {
	if c.scope != "" {
		return name == c.scope
	}
	return strayKind(name) == UnlistedPart
}

// reason says why a leftover may still be needed. It is "" if nobody needs it.
func (f *finds) reason(l Leftover) string {
	if l.Run != "" && f.alive(l.Run) {
		return fmt.Sprintf("run %s is alive", l.Run)
	}
	for _, c := range f.records {
		named := func(p Prepared) bool { return p.Name == l.Name }
		if l.Run == c.RunID || l.Run == "" && slices.ContainsFunc(c.New, named) {
			return fmt.Sprintf("the commit of run %s is recorded, and the next run finishes it", c.RunID)
		}
	}
	switch {
	case f.alive(""): // the name of a live run cannot be read, so any leftover may be its own
		return "a run is alive that gives no name"
	case l.Run == "" && len(f.holders) > 0:
		return fmt.Sprintf("run %s is alive", f.holders[0].RunID)
	}
	return ""
}

// records returns the recorded commits at d, by object name. A record
// that cannot be read is an error, because nobody knows which objects its
// commit needs.
func records(ctx context.Context, d Destination) (map[string]*Commit, error) {
	objects, err := d.List(ctx, ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	found := map[string]*Commit{}
	for _, name := range NamesOf(objects) {
		if !IsScopeName(name, IntentName) {
			continue
		}
		c, err := readRecord(ctx, d, name)
		if err != nil {
			return nil, err
		}
		if c != nil { // otherwise it was finished meanwhile
			found[name] = c
		}
	}
	return found, nil
}

// findStrays finds those of a dataset's parts, id sets and dead letters that neither its
// manifest nor a recorded commit names. A live run may still record what it wrote. Of a
// damaged manifest nobody knows what it names, which is an error only if parts are to be
// removed. Where parts stay whose manifest is missing, what is beside them stays too: the
// manifest may come back, from a backup for example.
func (c *cleaning) findStrays(ctx context.Context, f *finds, ours []Object) error {
	if len(ours) == 0 || f.holder(c.scope) != nil {
		return nil
	}
	names, m, err := needed(ctx, c.d, f.records[recordName("")])
	if _, damaged := errors.AsType[*ManifestError](err); damaged && !c.unlisted {
		return nil
	}
	if err != nil {
		return err
	}
	bare := m == nil && !c.unlisted && slices.ContainsFunc(ours, func(o Object) bool { return strayKind(o.Name) == UnlistedPart })
	for _, o := range ours {
		l := Leftover{Kind: strayKind(o.Name), Name: o.Name, Path: where(c.d, o.Name), Bytes: o.Bytes, Ref: o.Name}
		switch {
		case names[o.Name]:
		case l.Kind == UnlistedPart && !c.unlisted:
			f.kept = append(f.kept, Kept{Leftover: l, Why: "no manifest lists it, and --unlisted removes it"})
		case !bare:
			f.dead = append(f.dead, l)
		}
	}
	return nil
}
