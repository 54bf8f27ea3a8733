package crashtest

import (
	"fmt"
	"testing"
)

// TestSound runs without a crash: what the other tests rest on is right.
func TestSound(t *testing.T) {
	eachPlace(t, func(t *testing.T, k kind) {
		for _, o := range []output{ndjsonDataset, parquetDataset, csvFile} {
			t.Run(o.format, func(t *testing.T) {
				w := newWorld(t, k, o)
				w.oneOf()
				for round := range 3 {
					w.run()
					w.whole(truth(w.form))
					if left, err := w.leftovers(t.Context()); err != nil || len(left) > 0 {
						t.Errorf("after a run that ended well there is left %v, %v", left, err)
					}
					change(w.form, round)
				}
			})
		}
	})
}

// TestCensus comes to the last occurrence of each point, and to none behind it.
func TestCensus(t *testing.T) {
	for _, second := range []bool{false, true} {
		for name, n := range occurrences(second) {
			t.Run(fmt.Sprintf("%s:%d,second=%t", name, n, second), func(t *testing.T) {
				w := newWorld(t, kind{"disk", false}, ndjsonDataset)
				if second {
					w.run()
					change(w.form, 1)
				}
				o := w.do(w.command(fmt.Sprintf("%s:%d", name, n+1), "run", w.definition()))
				if o.killed || o.code != 0 {
					t.Errorf("%s comes more than %d times, or the run ended with %d:\n%s", name, n, o.code, o.stderr)
				}
			})
		}
	}
}
