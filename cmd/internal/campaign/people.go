package main

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
)

const formName = "form1"

// people are those who fill a form in, change what they wrote, and remember all of it.
type people struct {
	form    *formservice.Form
	zone    *time.Location
	json    bool // the JSON generation is asked, whose dates are instants
	items   []formservice.Item
	late    int // so many of the last items turn up later
	nextID  int64
	begin   time.Time // the first day of results
	undated bool      // some results have no date
	links   string    // what links to uploaded files begin with; "" if there are none
	moving  bool      // results may move while they are read; else they may go

	mu      sync.Mutex // requests that come side by side change results
	random  *rand.Rand
	at      moment
	results map[int64]history
}

// newPeople makes a form with a past that ends now. The service's clock stamps each change.
func newPeople(random *rand.Rand, clock *clock, json bool, now time.Time) *people {
	p := &people{random: random, zone: clock.zone, json: json, nextID: 1 + random.Int64N(1_000_000), undated: chance(random, 50), results: map[int64]history{}}
	p.begin = now.AddDate(0, 0, -pick(random, 2, 5, 20, 45))
	p.items = newItems(random)
	p.late = random.IntN(min(3, len(p.items)))
	for i, it := range p.items {
		switch known := i < len(p.items)-p.late; {
		case !json || !several(it.Type):
		case known: // the JSON generation tells their places
			p.items[i].Choices = []string{"blue", "red", "green", "a|b", `c\d`}
		default: // of an item that the form does not list yet nobody knows the places of its choices
			p.items[i].Type = "text"
		}
	}
	p.form = formservice.NewForm(formName, p.items[:len(p.items)-p.late], nil)
	p.form.Metas = []string{"result_status", "date_start", "date_finish", "date_update", "user_ip"}
	for range p.amount() {
		date := p.date(now, 0)
		r := p.newResult(date)
		if chance(random, 10) { // it was edited
			date = date.Add(time.Duration(random.Int64N(int64(wall(now, p.zone).Sub(date)) + 1)))
		}
		r.SetMeta("date_update", stamp(date.Add(clock.off)))
		p.put(r)
	}
	p.form.SetClock(clock.stamp)
	return p
}

// amount is how many results there are at first: often about as many as fill a
// page, sometimes none.
func (p *people) amount() int {
	few, page, many := p.random.IntN(30), 98+p.random.IntN(6), 60+p.random.IntN(320)
	return pick(p.random, few/10, few, few, few, page, page, many, many, many, many)
}

func newItems(random *rand.Rand) []formservice.Item {
	items := make([]formservice.Item, 1+random.IntN(7))
	for i := range items {
		id := strconv.Itoa(1 + 7*i)
		if chance(random, 15) {
			id = "353-" + strconv.Itoa(i) + "-0"
		}
		items[i] = formservice.Item{
			ID: id, Index: i + 1,
			Label: pick(random, "Full name", "Comment", "Comment", "", "What\nelse?", "Größe", "ID", "select", "Price (CHF)", "Result status"),
			Type:  pick(random, "text", "text", "textarea", "checkbox", "list", "number", "date"),
		}
	}
	return items
}

// manners say what people may do to results at a time. They may always submit and edit.
type manners struct {
	move  bool // results get another date, or their first
	leave bool // results are deleted

	within []extract.Window // no result moves to a date outside these
}

// freely is how people behave while nothing of theirs is being read.
func freely() manners { return manners{move: true, leave: true} }

// change lets people change one result, if they may; now is the instant that it is.
func (p *people) change(now time.Time, m manners) {
	p.mu.Lock()
	defer p.mu.Unlock()
	insert := func() { p.insert(now) }
	acts := []func(){insert, insert, insert}
	if ids := p.ids(); len(ids) > 0 {
		r, _ := p.form.Get(ids[p.random.IntN(len(ids))]) // it is there
		edit, move := func() { p.answer(&r); p.put(r) }, func() { p.finish(r, p.date(now, 50), m) }
		acts = append(acts, edit, edit, edit)
		if m.move {
			acts = append(acts, move, move, move)
		}
		if m.leave {
			acts = append(acts, func() { p.remove(r.ID) })
		}
	}
	if m.move && m.leave {
		compensate := func() { p.compensate(m) }
		acts = append(acts, compensate, compensate, compensate)
	}
	pick(p.random, acts...)()
}

// insert submits a result, now or, as one that is stored late, before.
func (p *people) insert(now time.Time) {
	if p.late > 0 && chance(p.random, 30) {
		p.late-- // a new question was put to the form
	}
	p.put(p.newResult(p.date(now, 70)))
}

// finish gives a result a date, if it may have that.
func (p *people) finish(r formservice.Result, date time.Time, m manners) {
	if slices.ContainsFunc(m.within, func(w extract.Window) bool { return !w.Holds(date) }) {
		return
	}
	r.SetMeta("result_status", "Complete")
	p.setDate(&r, "date_finish", date)
	p.put(r)
}

// compensate moves a late result to the date of an early one, and deletes another early
// one, so that there are as many as before.
func (p *people) compensate(m manners) {
	var dated []formservice.Result
	for _, id := range p.ids() {
		if r, _ := p.form.Get(id); !r.Date().IsZero() {
			dated = append(dated, r)
		}
	}
	slices.SortFunc(dated, func(a, b formservice.Result) int { return a.Date().Compare(b.Date()) })
	if third := len(dated) / 3; third > 0 {
		early := func() formservice.Result { return dated[p.random.IntN(third)] }
		p.finish(dated[len(dated)-1-p.random.IntN(third)], early().Date(), m)
		p.remove(early().ID)
	}
}

// date is a moment of the past as the account's clock shows it, in recent of a hundred cases
// of the last two hours. Of the others many share a day, some a second, and some lie at a
// bound.
func (p *people) date(now time.Time, recent int) time.Time {
	if chance(p.random, recent) {
		return wall(now, p.zone).Add(-time.Duration(p.random.IntN(7200)) * time.Second)
	}
	span := now.Sub(p.begin)
	at := p.begin.Add(time.Duration(p.random.Int64N(int64(span))))
	if chance(p.random, 20) {
		at = p.begin.Add(span / 2).Add(time.Duration(p.random.IntN(3)) * time.Second)
	}
	date := wall(at, p.zone)
	if chance(p.random, 15) { // at the bound of windows and parts, or up to two seconds before it
		date = date.Truncate(pick(p.random, time.Hour, 24*time.Hour, 24*time.Hour)).Add(-time.Duration(p.random.IntN(3)) * time.Second)
	}
	return date
}

// newResult is a new result of a date.
func (p *people) newResult(date time.Time) formservice.Result {
	p.nextID += 1 + p.random.Int64N(4)
	r := formservice.Result{ID: p.nextID}
	r.SetMeta("result_status", "Incomplete")
	switch n := p.random.IntN(100); {
	case n < 4 && p.undated:
	case n < 12:
		p.setDate(&r, "date_start", date)
		if n < 8 && !p.json { // which knows no empty dates
			r.SetMeta("date_finish", "")
		}
	default:
		r.SetMeta("result_status", "Complete")
		p.setDate(&r, "date_start", date.Add(-time.Duration(p.random.IntN(600))*time.Second))
		p.setDate(&r, "date_finish", date)
	}
	r.SetMeta("user_ip", "198.51.100."+strconv.Itoa(p.random.IntN(256)))
	p.answer(&r)
	return r
}

// setDate sets a date of a result. What clocks leave out is moved where the JSON generation
// is asked, as it does.
func (p *people) setDate(r *formservice.Result, id string, date time.Time) {
	if p.json {
		date = wall(formservice.Instant(date, p.zone), p.zone)
	}
	r.SetMeta(id, stamp(date))
}

// answer fills in the form anew. Both generations are to show the same: an answer without a
// choice is an empty one by the JSON generation.
func (p *people) answer(r *formservice.Result) {
	r.Items = nil
	for _, it := range p.items[:len(p.items)-p.late] {
		if chance(p.random, 12) {
			continue // not answered
		}
		a := formservice.Answer{ID: it.ID, Type: it.Type, Index: it.Index}
		switch {
		case it.Choices != nil: // in the order of their places
			for _, c := range it.Choices {
				if chance(p.random, 30) {
					a.Values = append(a.Values, c)
				}
			}
		case several(it.Type):
			for range p.random.IntN(4) {
				a.Values = append(a.Values, pick(p.random, "red", "green", "a|b", `c\d`, "", p.text()))
			}
		case !chance(p.random, 3):
			a.Values = []string{p.value(it.Type)}
		}
		if p.json && len(a.Values) == 0 && several(it.Type) {
			a.Values = []string{""}
		}
		r.Items = append(r.Items, a)
	}
}

// value is an answer to a question of a type, which is not always what was asked for.
func (p *people) value(kind string) string {
	if n := p.random.IntN(100); n < 6 {
		return ""
	} else if n < 12 {
		return p.text()
	}
	switch kind {
	case "number":
		return pick(p.random, strconv.Itoa(p.random.IntN(2000)-1000), "007", strconv.Itoa(p.random.IntN(100))+".5", " 12 ")
	case "date":
		return p.begin.AddDate(0, 0, p.random.IntN(9999)-5000).Format(time.DateOnly)
	case "textarea":
		return strings.Repeat(p.text()+"\n", p.random.IntN(3))
	}
	if p.links != "" && chance(p.random, 40) {
		return fmt.Sprintf("%s%d_cv.pdf", p.links, p.random.IntN(1000))
	}
	return pick(p.random, "Anna", "O'Neil", "Ćirić", "山田", p.text())
}

// text is a value that has broken tools.
func (p *people) text() string {
	return pick(p.random, append(formservice.Hostile(), "ver\vtical", "\x00", "bell\a", "\x1b[31mred", "\x1f", "_x0041_", "_xD83D_", "_xd83d__xDE00_", "_x000D_")...)
}

// several tells whether an answer to an item of a type may hold several values.
func several(kind string) bool { return kind == "checkbox" || kind == "list" }

// stamp is a time as the service writes it.
func stamp(at time.Time) string { return at.Format(formservice.WallTime) }

// wall is the wall clock of an instant, with UTC as its vessel.
func wall(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// source is a source of chance, equal for equal numbers.
func source(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // nobody must be surprised
}

// chance is true in so many of a hundred cases.
func chance(random *rand.Rand, percent int) bool { return random.IntN(100) < percent }

// pick gives one of several.
func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// moment is a number that grows with each change of any result of a form.
type moment int

const (
	still moment = math.MaxInt // the end of a state that holds now
	never moment = -1          // before all moments
)

// state is what a result was from one moment up to another.
type state struct {
	from, to moment
	date     time.Time // wall clock, what the service filters by; zero: none
	is       formservice.Result
}

// history is every state that a result had, in order. There is a gap where it did not exist.
type history []state

// gone tells whether the result was deleted.
func (h history) gone() bool { return h[len(h)-1].to != still }

// between gives the states that held at any moment from a to b.
func (h history) between(a, b moment) (states []state) {
	for _, s := range h {
		if s.from <= b && s.to > a {
			states = append(states, s)
		}
	}
	return states
}

// throughout tells whether the result existed and was as wanted at every moment from since
// up to now.
func (h history) throughout(since moment, wanted func(state) bool) bool {
	until := still
	for _, s := range slices.Backward(h) {
		if s.to != until || !wanted(s) {
			return false
		}
		if until = s.from; until <= since {
			return true
		}
	}
	return false
}

// put stores a result, new or changed, and notes how the service answers it from now on.
func (p *people) put(r formservice.Result) {
	if p.form.Update(r) != nil {
		_, _ = p.form.Insert(r) // one of the two does
	}
	p.end(r.ID)
	r, _ = p.form.Get(r.ID) // with the time of its change
	p.results[r.ID] = append(p.results[r.ID], state{from: p.at, to: still, date: r.Date(), is: r})
}

// remove deletes a result, if it is there.
func (p *people) remove(id int64) {
	if p.form.Delete(id) {
		p.end(id)
	}
}

// end ends the state of a result that held so far, at a new moment.
func (p *people) end(id int64) {
	p.at++
	if h := p.results[id]; len(h) > 0 && !h.gone() {
		h[len(h)-1].to = p.at
	}
}

// ids are those of all results that are there now, ascending.
func (p *people) ids() (ids []int64) {
	for _, id := range slices.Sorted(maps.Keys(p.results)) {
		if !p.results[id].gone() {
			ids = append(ids, id)
		}
	}
	return ids
}
