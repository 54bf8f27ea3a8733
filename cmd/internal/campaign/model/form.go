package model

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// Form is a form of the service with the history of its results. Whoever
// changes results does it here, so that no state is missed. It is safe for
// concurrent use.
type Form struct {
	Served *formservice.Form
	// Lack tells of a service that shows results without date_update whose ids
	// are multiples of it. 0: it shows all of them with it.
	Lack int
	// Instants tells of a service that answers by the JSON generation: dates are instants
	// of this zone, and an answer without a choice is an empty one.
	Instants *time.Location

	mu      sync.Mutex
	at      Moment
	results map[int64]History
}

// NewForm gives a form without results.
func NewForm(served *formservice.Form) *Form {
	return &Form{Served: served, results: map[int64]History{}}
}

// At is the moment that has come.
func (f *Form) At() Moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// Put stores a result, new or changed.
func (f *Form) Put(r formservice.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r = f.asInstants(r.Clone())
	f.at++
	err := f.Served.Update(r)
	if err != nil {
		_, err = f.Served.Insert(r)
	}
	if err != nil {
		panic(err) // one of the two must do
	}
	r = f.shown(r.ID)
	h := f.results[r.ID]
	h.End(f.at)
	f.results[r.ID] = h.Begin(f.at, DateOf(r), r)
}

// shown is a result as the service answers it, with the time of its change.
func (f *Form) shown(id int64) formservice.Result {
	r, _ := f.Served.Get(id) // it was stored just now
	if f.Lack > 0 && id%int64(f.Lack) == 0 {
		r.Metas = slices.DeleteFunc(r.Metas, func(m formservice.Meta) bool { return m.ID == "date_update" })
	}
	return f.asInstants(r)
}

// asInstants is a result as both generations show it, where the JSON one is asked.
func (f *Form) asInstants(r formservice.Result) formservice.Result {
	if f.Instants == nil {
		return r
	}
	r.Metas = slices.DeleteFunc(r.Metas, func(m formservice.Meta) bool { return m.Value == "" && strings.HasPrefix(m.ID, "date_") })
	for i, m := range r.Metas {
		if at, err := time.Parse(formservice.WallTime, m.Value); err == nil && strings.HasPrefix(m.ID, "date_") {
			r.Metas[i].Value = readback.Instant(at, f.Instants).Format(formservice.WallTime) // a time that clocks leave out is moved
		}
	}
	for i, a := range r.Items {
		if len(a.Values) == 0 && (a.Type == "checkbox" || a.Type == "list") {
			r.Items[i].Values = []string{""}
		}
	}
	return r
}

// Remove deletes a result, if it is there.
func (f *Form) Remove(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at++
	if f.Served.Delete(id) {
		f.results[id].End(f.at)
	}
}

// IDs are those of all results that are there now, ascending.
func (f *Form) IDs() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []int64
	for id, h := range f.results {
		if _, there := h.Current(); there {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Histories are those of all results that there ever were.
func (f *Form) Histories() map[int64]History {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[int64]History, len(f.results))
	for id, h := range f.results {
		all[id] = slices.Clone(h)
	}
	return all
}

// DateOf is the date that the service filters a result by, zero for none.
func DateOf(r formservice.Result) time.Time {
	for _, id := range []string{"date_finish", "date_start"} {
		if v, ok := r.Meta(id); ok {
			if t, err := time.Parse(formservice.WallTime, v); err == nil {
				return t
			}
		}
	}
	return time.Time{}
}
