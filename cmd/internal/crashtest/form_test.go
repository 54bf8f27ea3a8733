package crashtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
		results := aDay
		if day == longDay {
			results = aLongDay
		}
		for i := range results {
			insert(form, day, i, "first")
		}
	}
	return form
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

// insert adds the i-th result of a day.
func insert(form *formservice.Form, day, i int, value string) {
	amount := strconv.Itoa(100*day + i)
	if i == 7 && day%4 == 1 {
		amount = spoilt
	}
	at := time.Date(2026, 1, day, i%24, i%60, 30, 0, time.UTC)
	r := formservice.Result{
		Metas: []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}},
		Items: []formservice.Answer{{ID: "1", Values: []string{value}}, {ID: "2", Values: []string{amount}}},
	}
	if _, err := form.Insert(r); err != nil {
		panic(err) // an id that is made anew is free
	}
}

// change does to the form what people do in between two runs: results are added, edited and
// deleted, one moves to another day, and one day loses all. Some days keep what they had.
func change(form *formservice.Form) {
	for _, id := range ofDay(form, 2) {
		form.Delete(id)
	}
	insert(form, firstDays+2, 1, "added")
	for _, day := range []int{4, 7, 10} {
		ids := ofDay(form, day)
		edit(form, ids[0], 0)
		form.Delete(ids[3])
		insert(form, day, 1, "added")
	}
	edit(form, slices.Max(ofDay(form, 5)), 6)
}

// edit gives a result another value and, where day is not 0, another day.
func edit(form *formservice.Form, id int64, day int) {
	r, _ := form.Get(id)
	r.Items[0].Values = []string{"edited"}
	if day != 0 {
		at := time.Date(2026, 1, day, 23, 0, 0, 0, time.UTC)
		r.Metas = []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}}
	}
	if err := form.Update(r); err != nil {
		panic(err) // the form has the result
	}
}
