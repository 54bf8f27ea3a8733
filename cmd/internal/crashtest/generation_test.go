package crashtest

import (
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestByV2KilledAtEveryPoint kills a run by API v2 over a dataset that API v1 began. What
// readers see then, and what the next runs make of it, is what it is by v1.
func TestByV2KilledAtEveryPoint(t *testing.T) {
	v1, v2 := []string{"--var", "api=v1"}, []string{"--var", "api=v2"}
	for _, c := range needs.Sample(crashes(true), 3) {
		t.Run(c.String(), func(t *testing.T) {
			w := newWorld(t, kind{"disk", false}, ndjsonDataset)
			w.run(v1...)
			before := truth(w.form)
			change(w.form, 1)
			w.runInto(c.String(), v2...)
			w.crashed(c.sight, before, truth(w.form))
			w.run(v2...)
			w.whole(truth(w.form))
			change(w.form, 2)
			w.run(v1...)
			w.whole(truth(w.form))
			w.clean()
		})
	}
}
