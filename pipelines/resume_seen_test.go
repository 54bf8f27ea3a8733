package pipelines_test

import (
	"fmt"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// TestResumeWithWhatWasSeen: what a run that was stopped had seen of its
// windows' rows counts in the one that takes them over, also from a window that
// it had not read to its end.
func TestResumeWithWhatWasSeen(t *testing.T) {
	const want = "amber 1, blue 2, light green 1, red 4"
	for name, c := range map[string]struct {
		out  definition.Output
		stem string
	}{
		"file":    {definition.Output{Path: "f.csv", Format: "csv"}, "f"},
		"dataset": {days(), "days"},
	} {
		for stop := 1; stop <= 3; stop++ {
			t.Run(fmt.Sprint(name, stop), func(t *testing.T) {
				r := newResumed(t)
				r.source.BaseURL = newWorld(t, colourForm()).source.BaseURL
				def := func() *definition.Definition {
					return r.coloured(schemas.Column{ListAs: schemas.ListColumns}, c.out)
				}
				r.stopAt(def(), "read", stop)
				report, err := pipelines.Run(t.Context(), def(), r.o)
				if err != nil || report.Forms[0].Kept != stop {
					t.Fatalf("%d windows were kept: %v", report.Forms[0].Kept, err)
				}
				if b := r.codebook(c.stem); b.Rows != 9 || b.choices("206") != want {
					t.Errorf("%d rows with %s; want %s", b.Rows, b.choices("206"), want)
				}
			})
		}
	}
}

// manyDays is a form of so many days, each with a choice of its own.
func manyDays(days, colours int) *formservice.Form {
	items := []formservice.Item{{ID: "206", Type: "checkbox", Index: 2, Label: "Colours"}}
	results := make([]formservice.Result, 0, days)
	for d := 1; d <= days; d++ {
		results = append(results, picked(int64(d), d, fmt.Sprint("colour ", d%colours)))
	}
	return formservice.NewForm("form1", items, results)
}

// TestRunsWithLateChoicesComeToAnEnd: each is cut off after some windows. What a
// window lacks of the choices known by then must not be read again for ever, and
// the bytes are those of one run.
func TestRunsWithLateChoicesComeToAnEnd(t *testing.T) {
	define := func(w *world) *definition.Definition {
		def := w.coloured(schemas.Column{ListAs: schemas.ListColumns}, definition.Output{Path: "days/", Format: "csv", Partition: definition.PartitionDay})
		def.Extract.To = extracttest.Wall("2026-01-13")
		return def
	}
	whole := newWorld(t, manyDays(12, 7))
	whole.run(define(whole))
	w := newWorld(t, manyDays(12, 7))
	r := &resumed{world: w, o: options()}
	for range 3 {
		r.stopAt(define(w), "read", 3)
	}
	report, err := pipelines.Run(t.Context(), define(w), r.o)
	if err != nil || report.Forms[0].Kept != 9 {
		t.Fatalf("%v; report %+v", err, report.Forms[0])
	}
	w.checkTidy()
	sameTree(t, dataOnly(tree(t, whole.dir)), dataOnly(tree(t, w.dir)))
}
