package formservice

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// record is a result with the date that it is filtered by.
type record struct {
	id, date int64   // wall-clock seconds, or never
	result   *Result // nil: it is generated
}

func newRecord(r Result) record {
	rec := record{id: r.ID, date: never, result: &r}
	if at := r.Date(); !at.IsZero() {
		rec.date = at.Unix()
	}
	return rec
}

// Change is one change of a form's results since it was made, in order, so
// that a test can tell every state that a result had.
type Change struct {
	Before Result // the zero Result where it was inserted
	After  Result // the zero Result where it was deleted
}

// Changes returns what was inserted, updated and deleted, in order.
func (f *Form) Changes() []Change {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(f.stored.changes)
}

// SetClock changes Clock. It may be called while requests are answered.
func (f *Form) SetClock(clock func() time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Clock = clock
}

// stamp sets a result's date_update to the clock's time, if there is a clock.
func stamp(r *Result, clock func() time.Time) {
	if clock != nil {
		r.SetMeta(metaUpdate, clock().Format(WallTime))
	}
}

// Insert adds a copy of a result and returns its id: the one given or, for
// none, one above all others. An id that exists is an error.
func (f *Form) Insert(r Result) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.ID == 0 {
		r.ID = f.stored.top + 1
	}
	if _, ok := f.stored.find(r.ID); ok {
		return 0, fmt.Errorf("insert into form %q: result %d exists; use Update", f.Directory, r.ID)
	}
	r = r.Clone()
	stamp(&r, f.Clock)
	f.hold(r)
	f.stored.changes = append(f.stored.changes, Change{After: r})
	return r.ID, nil
}

// Update replaces the result that has r's id by a copy of r. An id that does
// not exist is an error.
func (f *Form) Update(r Result) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.update(r)
}

func (f *Form) update(r Result) error {
	before, ok := f.stored.load(r.ID)
	if !ok {
		return fmt.Errorf("update form %q: there is no result %d; use Insert", f.Directory, r.ID)
	}
	r = r.Clone()
	stamp(&r, f.Clock)
	f.stored.drop(r.ID)
	f.hold(r)
	f.stored.changes = append(f.stored.changes, Change{Before: before, After: r})
	return nil
}

// Finish completes a result at a wall-clock time: its status is Complete from
// now on and its date_finish at. An id that does not exist is an error.
func (f *Form) Finish(id int64, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.stored.load(id)
	if !ok {
		return fmt.Errorf("finish a result of form %q: there is no result %d", f.Directory, id)
	}
	r.SetMeta(metaStatus, "Complete")
	r.SetMeta(metaFinish, at.Format(WallTime))
	return f.update(r)
}

// Delete removes a result and tells whether there was one.
func (f *Form) Delete(id int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, ok := f.stored.load(id)
	if !ok {
		return false
	}
	f.stored.changes = append(f.stored.changes, Change{Before: before})
	f.stored.drop(id)
	return true
}

// find returns where in records the id is or belongs.
func (st *stored) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(st.records, id, func(r record, id int64) int { return cmp.Compare(r.id, id) })
}

// hold adds a result that the form does not have.
func (f *Form) hold(r Result) {
	f.stored.top = max(f.stored.top, r.ID)
	i, _ := f.stored.find(r.ID)
	f.stored.records = slices.Insert(f.stored.records, i, newRecord(r))
	for _, m := range r.Metas {
		f.noteColumn(m.ID, false)
	}
	for _, a := range r.Items {
		f.noteColumn(a.ID, true)
	}
}

func (f *Form) noteColumn(id string, item bool) {
	if f.hasColumn(id) {
		return
	}
	if f.stored.seen == nil {
		f.stored.seen = make(map[string]bool)
	}
	f.stored.seen[id] = item
}

// drop takes a result out.
func (st *stored) drop(id int64) {
	if i, ok := st.find(id); ok {
		st.records = slices.Delete(st.records, i, i+1)
	}
}
