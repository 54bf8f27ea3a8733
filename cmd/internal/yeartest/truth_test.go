package yeartest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/cmd/internal/history"
	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// What the truth is made of: see package history. A state is a row, see
// canonical.
type (
	moment = history.Moment
	state  = history.State[string]
	states = history.History[string]
)

// truth is what the service holds and ever held.
type truth struct {
	zone *time.Location
	seed uint64 // of the service's clock

	mu    sync.Mutex // of all that follows, and of its forms
	at    moment
	now   time.Time // virtual: when the deed of the moment is done
	forms []*form
	late  int // results that moved out of a part that no run reads again by itself
}

// form is one form of the service with the histories of its results.
type form struct {
	truth   *truth
	name    string
	served  *formservice.Form
	rate    int  // results that are begun in an hour of a busy day
	listed  bool // the service has it now
	results map[int64]states
	days    map[time.Time]map[int64]bool // results that are there now, by the day of their date
	oldest  time.Time                    // the first day that a result ever had
	nextID  int64
	items   int // items that were added to the form
}

func newForm(t *truth, name string, rate int) *form {
	f := &form{
		truth: t, name: name, rate: rate, nextID: 1000,
		served: formservice.NewForm(name, []formservice.Item{
			{ID: "1", Type: "text", Index: 1, Label: "What"},
			{ID: "2", Type: "text", Index: 2, Label: "How many"},
		}, nil),
		results: map[int64]states{}, days: map[time.Time]map[int64]bool{},
	}
	f.served.Metas = []string{"result_status", "date_start", "date_finish", "date_update", "user_ip"}
	f.served.SetClock(t.serviceClock)
	t.forms = append(t.forms, f)
	return f
}

// take gives the id of a result that is begun now. It may be stored later.
func (f *form) take() int64 {
	f.nextID += 1 + f.nextID%3
	return f.nextID
}

// put stores a result, new or changed. The service stamps it, so the truth is what
// the service holds then. mu is held.
func (f *form) put(r formservice.Result) {
	err := f.served.Update(r)
	if err != nil {
		_, err = f.served.Insert(r)
	}
	if err != nil {
		panic(err) // one of the two must do
	}
	r, _ = f.served.Get(r.ID) // it was stored right now
	f.end(r.ID)
	date := dateOf(r)
	f.results[r.ID] = f.results[r.ID].Begin(f.truth.at, date, f.truth.row(r))
	day := dayOf(date)
	if f.days[day] == nil {
		f.days[day] = map[int64]bool{}
	}
	if !date.IsZero() && (f.oldest.IsZero() || day.Before(f.oldest)) {
		f.oldest = day
	}
	f.days[day][r.ID] = true
}

// remove deletes a result, if it is there. mu is held.
func (f *form) remove(id int64) {
	if f.served.Delete(id) {
		f.end(id)
	}
}

// end ends the current state of a result; the next moment begins.
func (f *form) end(id int64) {
	f.truth.at++
	h := f.results[id]
	if s, ok := h.Current(); ok {
		h.End(f.truth.at)
		delete(f.days[dayOf(s.Date)], id)
	}
}

// some gives a result of a day of the last so many, or of any day, ok false
// where there is none.
func (f *form) some(random *rand.Rand, today time.Time, days int) (formservice.Result, bool) {
	if !f.oldest.IsZero() {
		days = min(days, 1+int(today.Sub(f.oldest)/(24*time.Hour)))
	}
	for range 8 {
		day := today.AddDate(0, 0, -random.IntN(max(1, days)))
		ids := make([]int64, 0, len(f.days[day]))
		for id := range f.days[day] {
			ids = append(ids, id)
		}
		if len(ids) > 0 {
			slices.Sort(ids) // a seed decides, not a map
			return f.served.Get(ids[random.IntN(len(ids))])
		}
	}
	return formservice.Result{}, false
}

// dateOf is the date that the service filters a result by, zero for none.
func dateOf(r formservice.Result) time.Time {
	for _, id := range []string{"date_finish", "date_start"} {
		if v, ok := r.Meta(id); ok && v != "" {
			return parseWall(v)
		}
	}
	return time.Time{}
}

const wallLayout = "2006-01-02 15:04:05"

// parseWall reads wall-clock time; UTC is its vessel.
func parseWall(text string) time.Time {
	t, err := time.Parse(wallLayout, text)
	if err != nil {
		panic(err) // whoever wrote it used wallLayout
	}
	return t
}

// wall is the wall clock of an instant in the account's zone.
func (t *truth) wall(at time.Time) time.Time {
	return parseWall(at.In(t.zone).Format(wallLayout))
}

// dayOf is the day of a wall-clock time.
func dayOf(date time.Time) time.Time {
	return time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, time.UTC)
}

// row is what a dataset is to hold of a result: contract.md's columns.
func (t *truth) row(r formservice.Result) string {
	columns := map[string]string{}
	for _, m := range r.Metas {
		columns[m.ID] = m.Value
		if strings.HasPrefix(m.ID, "date_") {
			columns[m.ID] = t.stamp(parseWall(m.Value))
		}
	}
	for _, a := range r.Items {
		columns["item_"+a.ID] = a.Values[0]
	}
	return canonical(columns)
}

// canonical is a row as text: its values by column, without those that are
// null.
func canonical(columns map[string]string) string {
	text, err := json.Marshal(columns) // keys are sorted
	if err != nil {
		panic(err) // strings always go
	}
	return string(text)
}

// stamp is a wall-clock time with its offset.
func (t *truth) stamp(date time.Time) string {
	return readback.Instant(date, t.zone).Format(time.RFC3339)
}

// deletedSince tells whether a result was deleted since a moment.
func (f *form) deletedSince(since moment) bool {
	for _, h := range f.results {
		if _, there := h.Current(); !there && len(h) > 0 && h[len(h)-1].To > since {
			return true
		}
	}
	return false
}
