package main

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/campaign/model"
	"github.com/formetl/formetl/extract/formservice"
)

const formName = "form1"

// people are those who fill a form in, and change what they wrote.
type people struct {
	form    *model.Form
	random  *rand.Rand
	zone    *time.Location
	api     string             // the generation that they are read by
	items   []formservice.Item // also those that turn up later
	late    int                // so many of the last ones have not turned up yet
	texts   []string
	nextID  int64
	begin   time.Time // the first day of results
	undated bool
	moving  bool // results may move while they are read; else they may go
}

// newPeople makes a form with a past that ends now.
// Each result carries when it was changed last, by the service's clock, unless
// its id is a multiple of lack.
func newPeople(random *rand.Rand, service *clock, api string, lack int, now time.Time) *people {
	zone := service.zone
	p := &people{random: random, zone: zone, api: api, nextID: 1 + random.Int64N(1_000_000), undated: chance(random, 50), texts: texts()}
	p.begin = now.AddDate(0, 0, -pick(random, 2, 5, 20, 45))
	p.items = newItems(random)
	p.late = random.IntN(min(3, len(p.items)))
	for i, it := range p.items {
		switch last := i >= len(p.items)-p.late; {
		case api != formservice.V2 || !several(it.Type):
		case last:
			p.items[i].Type = "text" // of an item that the form does not list yet nobody knows the places of its choices
		default: // the JSON generation tells their places
			p.items[i].Choices = []string{"blue", "red", "green", "a|b", `c\d`}
		}
	}
	served := formservice.NewForm(formName, p.items[:len(p.items)-p.late], nil)
	served.Metas = []string{"result_status", "date_start", "date_finish", "date_update", "user_ip"}
	served.Views = []formservice.View{newView(random, p.items)}
	p.form = model.NewForm(served)
	p.form.Lack = lack
	if api == formservice.V2 {
		p.form.Instants = zone
	}
	for range p.amount() {
		date := p.date(now)
		r := p.newResult(date)
		if chance(random, 10) { // it was edited
			date = date.Add(time.Duration(random.Int64N(int64(wall(now, zone).Sub(date)) + 1)))
		}
		setMeta(&r, "date_update", date.Add(service.off))
		p.form.Put(r)
	}
	served.SetClock(service.stamp)
	return p
}

// amount is how many results there are at first: often about as many as fill a
// page, sometimes none.
func (p *people) amount() int {
	switch p.random.IntN(10) {
	case 0:
		return p.random.IntN(3)
	case 1, 2, 3:
		return p.random.IntN(30)
	case 4, 5:
		return 98 + p.random.IntN(6)
	}
	return 60 + p.random.IntN(320)
}

// texts are values that have broken tools.
func texts() []string {
	return append(formservice.Hostile(), "ver\vtical", "\x00", "bell\a", "\x1b[31mred", "\x1f", "_x0041_", "_xD83D_", "_xd83d__xDE00_", "_x000D_")
}

func newItems(random *rand.Rand) []formservice.Item {
	labels := []string{"Full name", "Comment", "Comment", "", "What\nelse?", "Größe", "ID", "select", "Price (CHF)", "Result status"}
	items := make([]formservice.Item, 1+random.IntN(7))
	for i := range items {
		id := strconv.Itoa(1 + 7*i)
		if chance(random, 15) {
			id = "353-" + strconv.Itoa(i) + "-0"
		}
		items[i] = formservice.Item{
			ID: id, Index: i + 1, Label: labels[random.IntN(len(labels))],
			Type: pick(random, "text", "text", "textarea", "checkbox", "list", "number", "date"),
		}
	}
	return items
}

// newView is a Results View of a few columns and, sometimes, of a few results.
func newView(random *rand.Rand, items []formservice.Item) formservice.View {
	v := formservice.View{ID: "101", Columns: []string{"result_status", "date_finish"}}
	for _, it := range items {
		if chance(random, 60) {
			v.Columns = append(v.Columns, it.ID)
		}
	}
	if chance(random, 50) {
		v.Columns = append(v.Columns, "date_update", "user_ip")
	}
	if chance(random, 50) {
		v.Where = []formservice.Condition{{Column: "result_status", Operator: formservice.Equals, Term: "Complete"}}
	}
	return v
}

// date is a moment of the past as the account's clock shows it; many share a
// day, some a second, and some lie at a bound.
func (p *people) date(now time.Time) time.Time {
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

// wall is the wall clock of an instant, with UTC as its vessel.
func wall(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// newResult is a result of a date; its id is new, and now and then lower than
// others of its time, as that of one that was begun long ago.
func (p *people) newResult(date time.Time) formservice.Result {
	p.nextID += 1 + p.random.Int64N(4)
	r := formservice.Result{ID: p.nextID, Metas: []formservice.Meta{{ID: "result_status", Value: "Complete"}}}
	stamp := func(meta string, at time.Time) {
		r.Metas = append(r.Metas, formservice.Meta{ID: meta, Value: at.Format(formservice.WallTime)})
	}
	switch n := p.random.IntN(100); {
	case n < 4 && p.undated:
		r.Metas[0].Value = "Incomplete"
	case n < 12:
		r.Metas[0].Value = "Incomplete"
		stamp("date_start", date)
		if n < 8 {
			r.Metas = append(r.Metas, formservice.Meta{ID: "date_finish"})
		}
	default:
		stamp("date_start", date.Add(-time.Duration(p.random.IntN(600))*time.Second))
		stamp("date_finish", date)
	}
	r.Metas = append(r.Metas, formservice.Meta{ID: "user_ip", Value: "198.51.100." + strconv.Itoa(p.random.IntN(256))})
	p.answer(&r)
	return r
}

// answer fills in the form anew.
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
		r.Items = append(r.Items, a)
	}
}

// value is an answer to a question of a type, which is not always what was
// asked for.
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
	return pick(p.random, "Anna", "O'Neil", "Ćirić", "山田", p.text())
}

// several tells whether an answer to an item of a type may hold several values.
func several(kind string) bool { return kind == "checkbox" || kind == "list" }

func (p *people) text() string { return p.texts[p.random.IntN(len(p.texts))] }

// chance is true in so many of a hundred cases.
func chance(random *rand.Rand, percent int) bool { return random.IntN(100) < percent }

// pick gives one of several.
func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }
