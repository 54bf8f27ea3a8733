package pipelinestest

import (
	"fmt"
	"strings"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/schemas"
)

// Result is a result that was finished at a time ("" for one without a date), with one answer.
func Result(id int64, finished, answer string) formservice.Result {
	r := formservice.Result{
		ID: id, Metas: []formservice.Meta{{ID: "result_status", Value: "Complete"}},
		Items: []formservice.Answer{{ID: "1", Type: "text", Index: 1, Values: []string{answer}}},
	}
	if finished != "" {
		r.Metas = append(r.Metas, formservice.Meta{ID: "date_finish", Value: finished})
	}
	return r
}

// Truth gives the results of a form that keep passes; nil passes all, by ascending id.
func Truth(f *formservice.Form, keep func(formservice.Result) bool) []formservice.Result {
	var rs []formservice.Result
	f.Each(func(r formservice.Result) bool {
		if keep == nil || keep(r) {
			rs = append(rs, r.Clone())
		}
		return true
	})
	return rs
}

// Date is the wall clock that the service filters a result by.
func Date(r formservice.Result) string {
	if d, ok := r.Meta("date_finish"); ok && d != "" {
		return d
	}
	d, _ := r.Meta("date_start")
	return d
}

// ChangeLines shows changes of a form, a line each.
func ChangeLines(changes []schemas.Change) string {
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = fmt.Sprintf("%s %s %s", c.Kind, c.From, c.Column)
		if c.Key != "" {
			list[i] += " " + c.Key
		}
		list[i] += fmt.Sprintf(" [%s] [%s]", c.Was, c.Is)
		if c.Label != "" {
			list[i] += " " + c.Label
		}
		if c.Count > 0 {
			list[i] += fmt.Sprint(" x", c.Count)
		}
		if c.Breaking {
			list[i] += " breaks"
		}
	}
	return strings.Join(list, "\n")
}
