package pipelines_test

import (
	"fmt"
	"testing"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// TestResumeWithWhatWasSeen: what a run that was stopped had seen of its windows' rows
// counts in the one that takes them over. Rows, child tables and codebooks are those of a
// run that nobody disturbed, also where a choice comes late.
func TestResumeWithWhatWasSeen(t *testing.T) {
	for name, out := range map[string]definition.Output{
		"file":    {Path: "f.csv", Format: "csv"},
		"dataset": {Path: "days/", Format: "csv", Partition: definition.PartitionDay},
	} {
		define := func(w *world) *definition.Definition {
			return w.coloured(schemas.Column{ListAs: schemas.ListColumns, Explode: true}, out)
		}
		whole := newWorld(t, colourForm())
		whole.run(define(whole))
		for stop := 1; stop <= 3; stop++ {
			t.Run(fmt.Sprint(name, stop), func(t *testing.T) {
				r := newResumedOf(t, colourForm())
				r.stopAt(define(r.world), "read", stop)
				report, err := pipelines.Run(t.Context(), define(r.world), r.o)
				if err != nil || report.Forms[0].WindowsKept != stop {
					t.Fatalf("%d windows were kept: %v", report.Forms[0].WindowsKept, err)
				}
				r.checkTidy()
				sameTree(t, dataOnly(tree(t, whole.dir)), dataOnly(tree(t, r.dir)))
			})
		}
	}
}
