package crashtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// The form's results lie in the first days of January 2026; the definition
// asks for lastDay of them.
const (
	firstDays = 12  // that hold results at first
	lastDay   = 15  // that the definition asks for
	aDay      = 20  // results of a day
	longDay   = 6   // holds more than a page of 100
	aLongDay  = 130 // results of it
	spoilt    = "nobody knows"
)

// rows are the rows of a reading or of the form: the value of each result.
type rows map[int64]string

func (r rows) equal(other rows) bool { return maps.Equal(r, other) }

// differs says in what r differs from want, for people.
func (r rows) differs(want rows) string {
	missing, extra, other := 0, 0, 0
	example := ""
	for id, v := range want {
		got, ok := r[id]
		switch {
		case !ok:
			missing++
			example = fmt.Sprintf("result %d is missing", id)
		case got != v:
			other++
			example = fmt.Sprintf("result %d is %q and not %q", id, got, v)
		}
	}
	for id := range r {
		if _, ok := want[id]; !ok {
			extra++
			example = fmt.Sprintf("result %d should not be there", id)
		}
	}
	return fmt.Sprintf("%d rows for %d: %d missing, %d too many, %d others; %s", len(r), len(want), missing, extra, other, example)
}

// newForm is a form of 370 results in twelve days, some of which the
// definition rejects.
func newForm() *formservice.Form {
	form := formservice.NewForm("form1", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Value"},
		{ID: "2", Type: "text", Index: 2, Label: "Amount"},
	}, nil)
	form.Metas = []string{"date_finish"}
	for day := 1; day <= firstDays; day++ {
		fill(form, day, 0)
	}
	return form
}

// newBigForm has so many results, each with a text of so many characters, one after the other
// by equal steps.
func newBigForm(results, length int, from time.Time, step time.Duration) *formservice.Form {
	form := formservice.NewForm("form1", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Value"},
		{ID: "2", Type: "text", Index: 2, Label: "Amount"},
	}, nil)
	form.Metas = []string{"date_finish"}
	for i := range results {
		at := from.Add(time.Duration(i) * step)
		_, err := form.Insert(formservice.Result{
			Metas: []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}},
			Items: []formservice.Answer{{ID: "1", Values: []string{fmt.Sprint(i, strings.Repeat(" x", length/2))}}, {ID: "2", Values: []string{"1"}}},
		})
		if err != nil {
			panic(err) // an id that is made anew is free
		}
	}
	return form
}

// fill gives a day its results.
func fill(form *formservice.Form, day, round int) {
	n := aDay
	if day == longDay {
		n = aLongDay
	}
	for i := range n {
		insert(form, day, i, round)
	}
}

func insert(form *formservice.Form, day, i, round int) {
	amount := strconv.Itoa(100*day + i)
	if i == 7 && day%4 == 1 {
		amount = spoilt
	}
	at := time.Date(2026, 1, day, i%24, i%60, 30, 0, time.UTC)
	r := formservice.Result{
		Metas: []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}},
		Items: []formservice.Answer{{ID: "1", Values: []string{fmt.Sprintf("first, of round %d", round)}}, {ID: "2", Values: []string{amount}}},
	}
	if _, err := form.Insert(r); err != nil {
		panic(err) // an id that is made anew is free
	}
}

// truth is what a dataset of the form must hold now.
func truth(form *formservice.Form) rows {
	held := rows{}
	form.Each(func(r formservice.Result) bool {
		if amount, _ := r.Values("2"); amount[0] != spoilt {
			value, _ := r.Values("1")
			held[r.ID] = value[0]
		}
		return true
	})
	return held
}

// ofDay gives the ids of a day's results, in order.
func ofDay(form *formservice.Form, day int) []int64 {
	var ids []int64
	form.Each(func(r formservice.Result) bool {
		if dayOf(r) == day {
			ids = append(ids, r.ID)
		}
		return true
	})
	return ids
}

func dayOf(r formservice.Result) int {
	v, _ := r.Meta("date_finish")
	at, err := time.Parse(formservice.WallTime, v)
	if err != nil {
		panic(err) // newForm gives every result a date
	}
	return at.Day()
}

// change does to the form what people do in between two runs: results are
// added, edited and deleted, one moves to another day, one day loses all and
// another gets its first. The days differ from round to round; some keep what
// they had.
func change(form *formservice.Form, round int) {
	day := func(n int) int { return 1 + (round+n)%firstDays }
	for _, id := range ofDay(form, day(0)) {
		form.Delete(id)
	}
	if len(ofDay(form, day(-1+firstDays))) == 0 {
		fill(form, day(-1+firstDays), round)
	}
	insert(form, firstDays+1+round%(lastDay-firstDays), round, round)
	for _, n := range []int{2, 5, 8} {
		ids := ofDay(form, day(n))
		edit(form, ids[0], round, 0)
		if len(ids) > 3 {
			form.Delete(ids[3])
		}
		insert(form, day(n), round, round)
	}
	ids := ofDay(form, day(3))
	edit(form, slices.Max(ids), round, day(4))
}

// edit gives a result another value and, where day is not 0, another day.
func edit(form *formservice.Form, id int64, round, day int) {
	r, _ := form.Get(id)
	r.Items[0].Values = []string{fmt.Sprintf("edited in round %d", round)}
	if day != 0 {
		at := time.Date(2026, 1, day, 23, 0, round%60, 0, time.UTC)
		r.Metas = []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}}
	}
	if err := form.Update(r); err != nil {
		panic(err) // the form has the result
	}
}
