package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// finds is what a look at a destination found besides committed data.
type finds struct {
	dead   []Leftover
	kept   []Kept
	others int

	holders []ScopedHolder // of leases, except the caller of Clean
	live    map[string]bool
	intents map[string]intent // by the names of their objects
	pending string            // run whose commit is recorded at the scope, "" for none
	broken  bool              // the dataset has a journal that cannot be read
	// resumable is the run of the dataset's journal. It is set only while a
	// file is cleaned.
	resumable string

	// The fields below are about the dataset's journal. They are set only while
	// a dataset is cleaned.
	journal   *Journal // nil if there is none that can be read
	records   []JournalRecord
	continued bool // its run is alive
}

// findAll is find, and adds parts that no manifest lists.
func (c *cleaning) findAll(ctx context.Context) (*finds, error) {
	f, err := c.find(ctx)
	if err == nil {
		err = c.findUnlisted(ctx, f)
	}
	return f, err
}

// find looks for leftovers, in the order that the comment of Clean gives.
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
	if err := c.findJournal(ctx, f); err != nil {
		return nil, err
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

// findJournal reads the journal if a dataset is cleaned. If a file is cleaned,
// it reads only which run the dataset's journal belongs to.
func (c *cleaning) findJournal(ctx context.Context, f *finds) (err error) {
	if c.scope != "" {
		f.resumable, err = journalRun(ctx, c.d)
	} else {
		f.journal, f.records, err = ReadJournal(ctx, c.d)
		f.continued = err == nil && f.live[f.journal.RunID]
	}
	if _, f.broken = errors.AsType[*JournalError](err); f.broken || errors.Is(err, ErrNotExist) {
		f.journal = nil
		return nil
	}
	return err
}

// closable gives the dataset's journal if Clean must close it, otherwise nil.
func (f *finds) closable(scope string) *ClosedJournal {
	switch {
	case f.broken && scope == "":
		return &ClosedJournal{}
	case f.journal == nil || f.continued:
		return nil
	}
	return &ClosedJournal{RunID: f.journal.RunID, Parts: len(PreparedOf(f.records...))}
}

// sort puts a leftover among the dead, the kept, or the others.
func (f *finds) sort(l Leftover, scope string) {
	why := f.reason(l, scope)
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
func (f *finds) reason(l Leftover, scope string) string {
	if l.Run != "" && f.live[l.Run] {
		return fmt.Sprintf("run %s is alive", l.Run)
	}
	for _, i := range f.intents {
		if i.needs(l) {
			return fmt.Sprintf("the commit of run %s is recorded, and the next run finishes it", i.run())
		}
	}
	switch {
	case f.live[""]: // the name of a live run cannot be read, so any leftover may be its own
		return "a run is alive that gives no name"
	case l.Run == "" && l.Kind == Temporary && len(f.holders) > 0:
		return fmt.Sprintf("run %s is alive", f.holders[0].RunID)
	case l.Run == "" || scope == "":
		return ""
	case l.Run == f.resumable:
		return fmt.Sprintf("run %s of the dataset there can be continued", l.Run)
	case f.broken:
		return "the journal of the dataset there cannot be read, and may list it"
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

// needs tells whether the commit needs a leftover. It compares the run, then
// the place, and the final name where the run is unknown.
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

// journalRun is the run whose journal lies at d, "" if there is none. It reads
// only the header, because the lease's holder may be writing records.
func journalRun(ctx context.Context, d Store) (string, error) {
	data, _, err := d.Get(ctx, journalPath())
	if errors.Is(err, ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var h JournalHeader
	if err := json.Unmarshal(data, &h); err != nil {
		return "", &JournalError{Name: journalPath(), Err: err}
	}
	return h.RunID, nil
}

// intents reads the records of commits at d, by their names. A record that
// cannot be read is an error, because nobody knows which objects its commit
// needs.
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
