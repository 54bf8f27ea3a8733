package load

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// finds is what lies at a destination besides what is committed.
type finds struct {
	dead   []Leftover
	kept   []Kept
	others int

	holders []ScopedHolder // of leases, without the one who cleans
	live    map[string]bool
	intents map[string]intent // by the names of their objects
	pending string            // run whose commit is recorded at the scope, "" if none is
}

// find looks, in the order that Clean promises.
func (c *cleaning) find(ctx context.Context) (*finds, error) {
	left, err := c.sweeper.Leftovers(ctx)
	if err != nil {
		return nil, err
	}
	sets, err := c.idSets(ctx)
	if err != nil {
		return nil, err
	}
	f := &finds{live: map[string]bool{}}
	holders, err := c.sweeper.Holders(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range holders {
		if h.Scope == c.scope && h.RunID == c.self.RunID {
			continue
		}
		f.holders = append(f.holders, h)
		f.live[h.RunID] = true
	}
	if f.intents, err = intents(ctx, c.d); err != nil {
		return nil, err
	}
	if i, ok := f.intents[intentPath(c.scope)]; ok {
		f.pending = i.run()
	}
	for _, l := range left {
		f.sort(l, c.scope)
	}
	orphans, err := c.orphans(ctx, f, sets)
	if err != nil {
		return nil, err
	}
	f.dead = append(f.dead, orphans...)
	return f, nil
}

// sort tells the dead from the rest.
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

// reason says why a leftover may still be needed, "" if nobody needs it.
func (f *finds) reason(l Leftover) string {
	if l.Run != "" && f.live[l.Run] {
		return fmt.Sprintf("run %s is alive", l.Run)
	}
	for _, i := range f.intents {
		if i.needs(l) {
			return fmt.Sprintf("the commit of run %s is recorded, and the next run finishes it", i.run())
		}
	}
	switch {
	case f.live[""]: // its lease cannot be read: anything may be its
		return "a run is alive that gives no name"
	case l.Run == "" && l.Kind == Temporary && len(f.holders) > 0:
		return fmt.Sprintf("run %s is alive", f.holders[0].RunID)
	}
	return ""
}

// ofScope tells whether an object's final name is the scope's own: the file
// itself, or a part of the dataset.
func ofScope(name, scope string) bool {
	if scope != "" {
		return name == scope
	}
	_, err := ParsePartName(name)
	return err == nil
}

// needs tells whether the commit needs a leftover: by its run, by where it
// lies, or, where neither can be told, by its final name.
func (i intent) needs(l Leftover) bool {
	if l.Run != "" && l.Run == i.run() {
		return true
	}
	var staged []Prepared
	switch {
	case i.Dataset != nil:
		staged = append(staged, i.Dataset.New...)
	case i.File != nil:
		staged = append(staged, i.File.File)
	}
	for _, p := range staged {
		if p.Staged == l.Ref || l.Run == "" && l.Name != "" && p.Name == l.Name {
			return true
		}
	}
	return false
}

// intents gives the records of commits at d, by the names of their objects.
// One that cannot be read is an error: what it needs cannot be told.
func intents(ctx context.Context, d Destination) (map[string]intent, error) {
	objects, err := d.List(ctx, ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	found := map[string]intent{}
	for _, name := range NamesOf(objects) {
		base := path.Base(name)
		if path.Dir(name) != ControlFolder || base != IntentName && !strings.HasPrefix(base, IntentName+"-") {
			continue
		}
		i, err := readIntent(ctx, d, name)
		if errors.Is(err, ErrNotExist) {
			continue // finished meanwhile
		}
		if err != nil {
			return nil, err
		}
		found[name] = i
	}
	return found, nil
}
