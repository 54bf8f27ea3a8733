package pipelines_test

import (
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// state looks, and fails the test where the look changes or asks anything.
func (w *world) state(def *definition.Definition, o pipelines.Options) (*upkeep.StateReport, error) {
	w.t.Helper()
	w.service.Reset()
	before := tree(w.t, w.dir)
	report, err := upkeep.State(w.t.Context(), def, o)
	sameTree(w.t, before, tree(w.t, w.dir))
	if counts := w.service.Counts(); len(counts) > 0 {
		w.t.Errorf("the service was asked for %v", counts)
	}
	return report, err
}

func (w *world) mustState(def *definition.Definition, o pipelines.Options) *upkeep.StateReport {
	w.t.Helper()
	report, err := w.state(def, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}
