//go:build resumeold

package pipelines_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// manyDays is a form of so many days, each with a choice of its own.
func manyDays(days, colours int) *formservice.Form {
	items := []formservice.Item{{ID: "206", Type: "checkbox", Index: 2, Label: "Colours"}}
	results := make([]formservice.Result, 0, days)
	for d := 1; d <= days; d++ {
		results = append(results, picked(int64(d), d, fmt.Sprint("colour ", d%colours)))
	}
	return formservice.NewForm("form1", items, results)
}

// stopAfter runs a definition on a host of its own until so many parts are
// recorded.
func (w *world) stopAfter(def *definition.Definition, parts int) error {
	ctx, cancel := context.WithCancelCause(w.t.Context())
	defer cancel(nil)
	var mu sync.Mutex
	o := options()
	o.At = func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if point == "recorded" {
			if parts--; parts == 0 {
				cancel(errStop)
			}
		}
	}
	_, err := pipelines.Run(ctx, def, o)
	w.leaveHost()
	return err
}

// TestRunsWithLateChoicesComeToAnEnd: each is cut off, and its state folder is
// lost. What a part lacks of the choices known by then must not be read again
// for ever.
func TestRunsWithLateChoicesComeToAnEnd(t *testing.T) {
	w := newWorld(t, manyDays(12, 7))
	def := w.coloured(schemas.Column{ListAs: schemas.ListColumns}, definition.Output{Path: "days/", Format: "csv", Partition: definition.PartitionDay})
	def.Extract.To = at(t, "2026-01-13")
	for range 6 {
		err := w.stopAfter(def, 8)
		if err == nil {
			w.checkTidy()
			return
		}
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
	}
	t.Error("6 runs of 8 windows each do not read 12 windows")
}
