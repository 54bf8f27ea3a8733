package pipelines_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// largeResults are more than a window holds on a service without order.
const largeResults = 12_000

// largeWorld has results with even ids, one for each minute, and a service that stamps
// each change and is seen to sort.
func largeWorld(t *testing.T) (*world, *formservice.Form) {
	t.Helper()
	results := make([]formservice.Result, 0, largeResults)
	for i := range int64(largeResults) {
		results = append(results, largeResult(2*(i+1)))
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	clock := extracttest.Wall("2026-01-10 12:00:00")
	form.SetClock(func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	})
	edited, _ := form.Get(3000)
	if err := form.Update(edited); err != nil {
		t.Fatal(err)
	}
	return newWorld(t, form), form
}

func largeResult(id int64) formservice.Result {
	date := extracttest.Wall("2026-01-01").Add(time.Duration(id) * time.Minute / 2).Format(formservice.WallTime)
	r := pipelinestest.Result(id, date, fmt.Sprint("r", id))
	r.Metas = append(r.Metas, formservice.Meta{ID: "date_update", Value: date})
	return r
}

// TestLargeWindowChanges: all results are one window. If some come or go after it was
// read, only the pages around them are read again.
func TestLargeWindowChanges(t *testing.T) {
	needs.Slow(t)
	for name, change := range map[string]func(*formservice.Form) error{
		"nothing": func(*formservice.Form) error { return nil },
		"one goes": func(f *formservice.Form) error {
			f.Delete(7000)
			return nil
		},
		"one comes": func(f *formservice.Form) error {
			_, err := f.Insert(largeResult(7001))
			return err
		},
		"one comes and one goes": func(f *formservice.Form) error {
			f.Delete(3002)
			_, err := f.Insert(largeResult(7001))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, form := largeWorld(t)
			o, once := options(), sync.Once{}
			o.At = func(point string) {
				if point == "read" {
					once.Do(func() {
						if err := change(form); err != nil {
							t.Error(err)
						}
					})
				}
			}
			report := w.runBy(w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"}), o)
			if name == "one comes and one goes" { // all others were there throughout, and the sum agrees
				if n := len(readNDJSON(t, w.path("form1.ndjson"))); n != largeResults {
					t.Errorf("%d rows", n)
				}
			} else {
				w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
			}
			if f := report.Forms[0]; f.Windows != 1 || !f.Verified.Match {
				t.Errorf("%d windows, verified %+v", f.Windows, f.Verified)
			}
			most := largeResults/100 + 12
			if name != "nothing" {
				most += 44
			}
			if n := w.service.Counts(); n[formservice.TransactionResults]+n[formservice.TransactionCount] > most {
				t.Errorf("%v requests, want at most %d", n, most)
			}
		})
	}
}
