package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// finds is what a search of a destination found besides committed data.
type finds struct {
	dead   []Leftover
	kept   []Kept
	others int

	holders []ScopedHolder    // of leases, except that of the caller
	intents map[string]intent // records of commits, by object name
}

// pending returns the run whose commit is recorded for the scope, "" for none.
func (f *finds) pending(scope string) string { return f.intents[intentPath(scope)].run() }

// alive tells whether a run holds a lease, or one of its processes does: their ids begin
// with its own.
func (f *finds) alive(run string) bool {
	return slices.ContainsFunc(f.holders, func(h ScopedHolder) bool {
		return h.RunID == run || run != "" && strings.HasPrefix(h.RunID, run+"-")
	})
}

// findAll does what find does, and also looks for parts that no manifest lists.
func (c *cleaning) findAll(ctx context.Context) (*finds, error) {
	f, err := c.find(ctx)
	if err == nil {
		err = c.findUnlisted(ctx, f)
	}
	return f, err
}

// find looks for leftovers, in the order that the comment of Clean describes.
func (c *cleaning) find(ctx context.Context) (*finds, error) {
	left, err := c.d.Leftovers(ctx)
	if err != nil {
		return nil, err
	}
	beside, err := c.beside(ctx)
	if err != nil {
		return nil, err
	}
	holders, err := c.d.Holders(ctx)
	if err != nil {
		return nil, err
	}
	own := func(h ScopedHolder) bool { return h.Scope == c.scope && h.RunID == c.self }
	f := &finds{holders: slices.DeleteFunc(holders, own)}
	if f.intents, err = intents(ctx, c.d); err != nil {
		return nil, err
	}
	for _, l := range left {
		f.sort(l, c.scope)
	}
	orphans, err := c.orphans(ctx, f, beside)
	f.dead = append(f.dead, orphans...)
	return f, err
}

// sort adds a leftover to the dead, which Clean removes, or to the kept, or counts it in others.
func (f *finds) sort(l Leftover, scope string) {
	why := f.reason(l)
	switch {
	case why != "":
		f.kept = append(f.kept, Kept{Leftover: l, Why: why})
	case l.Run != "" || l.Kind == Temporary || ofScope(l.Name, scope):
		f.dead = append(f.dead, l)
	default:
		f.others++
	}
}

// reason says why a leftover may still be needed. It is "" if nobody needs it.
func (f *finds) reason(l Leftover) string {
	if l.Run != "" && f.alive(l.Run) {
		return fmt.Sprintf("run %s is alive", l.Run)
	}
	for _, i := range f.intents {
		if i.needs(l) {
			return fmt.Sprintf("the commit of run %s is recorded, and the next run finishes it", i.run())
		}
	}
	switch {
	case f.alive(""): // the name of a live run cannot be read, so any leftover may be its own
		return "a run is alive that gives no name"
	case l.Run == "" && l.Kind == Temporary && len(f.holders) > 0:
		return fmt.Sprintf("run %s is alive", f.holders[0].RunID)
	}
	return ""
}

// ofScope tells whether an object's final name belongs to the scope: it is the
// file itself, or a part of the dataset.
func ofScope(name, scope string) bool {
	if scope != "" {
		return name == scope
	}
	_, err := ParsePartName(name)
	return err == nil
}

// needs tells whether the recorded commit needs a leftover. It compares the run
// and the staged object. If the leftover's run is unknown, it also compares the
// final name.
func (i intent) needs(l Leftover) bool {
	if l.Run != "" && l.Run == i.run() {
		return true
	}
	return slices.ContainsFunc(i.commit().New, func(p Prepared) bool {
		return p.Staged == l.Ref || l.Run == "" && l.Name != "" && p.Name == l.Name
	})
}

// intents returns the records of all commits at d, by object name. A record
// that cannot be read is an error, because nobody knows which objects its
// commit needs.
func intents(ctx context.Context, d Destination) (map[string]intent, error) {
	objects, err := d.List(ctx, ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	found := map[string]intent{}
	for _, name := range NamesOf(objects) {
		if !IsScopeName(name, IntentName) {
			continue
		}
		i, err := readIntent(ctx, d, name)
		if errors.Is(err, ErrNotExist) {
			continue // its commit was finished meanwhile
		}
		if err != nil {
			return nil, err
		}
		found[name] = i
	}
	return found, nil
}
