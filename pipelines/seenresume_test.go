//go:build resumeold

package pipelines_test

import (
	"fmt"
	"testing"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// TestSeenGoesOn: what a run that was stopped had seen of its windows' rows
// counts in the one that takes them over, from the spool or from a journal.
func TestSeenGoesOn(t *testing.T) {
	const want = "amber 1, blue 2, light green 1, red 4"
	for name, c := range map[string]struct {
		spool bool
		point string
		out   definition.Output
		stem  string
	}{
		"spool":   {true, "read", definition.Output{Path: "f.csv", Format: "csv"}, "f"},
		"journal": {false, "recorded", days(), "days"},
	} {
		for stop := 1; stop <= 3; stop++ {
			t.Run(fmt.Sprint(name, stop), func(t *testing.T) {
				r := newResumed(t)
				r.url, r.spool = newWorld(t, colourForm()).url, c.spool
				def := func() *definition.Definition {
					return r.coloured(schemas.Column{ListAs: schemas.ListColumns}, c.out)
				}
				r.stopAt(def(), c.point, stop)
				if !c.spool {
					r.leaveHost()
				}
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
