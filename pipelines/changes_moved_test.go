package pipelines_test

import (
	"fmt"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestRequestsWithoutAFeed: on a service that does not sort, a day of hourly runs
// costs what it costs with changes: lookback, and a look at the service once a day.
func TestRequestsWithoutAFeed(t *testing.T) {
	const looks = 6 // two days begin, and a look takes at most three requests
	for name, faults := range map[string]formservice.Faults{"ignores fs_sort": {IgnoreSort: true}, "lacks stamps": {LackUpdate: 1}} {
		t.Run(name, func(t *testing.T) {
			spent := map[definition.Changes]int{}
			for _, how := range []definition.Changes{definition.ChangesAuto, definition.ChangesLookback} {
				s := newStamped(t)
				s.service.SetFaults(faults)
				s.edit = func(def *definition.Definition) { def.Extract.Changes = how }
				if _, err := pipelines.Run(t.Context(), s.definition(), s.o); err != nil {
					t.Fatal(err)
				}
				for hour := range 24 {
					s.later(func() {
						if hour%4 == 1 {
							s.insert(int64(4000+hour), s.clock.Format(formservice.WallTime))
						}
						if hour%6 == 2 {
							s.change(1090+int64(hour%4), fmt.Sprint("edited in hour ", hour)) // within the lookback
						}
					})
					s.service.Reset()
					all, err := pipelines.Run(t.Context(), s.definition(), s.o)
					if err != nil {
						t.Fatal(err)
					}
					spent[how] += len(s.service.Log())
					if faults.IgnoreSort { // else answers lack what the truth holds
						s.checkDataset("days", pipelinestest.Truth(s.form, s.due))
					}
					report := all.Forms[0]
					if c := report.ResultChanges; c == nil || c.Method != load.MethodLookback || c.Reason == "" || report.Verified.Method != load.MethodCounts {
						t.Fatalf("changes %+v, verified %+v", c, report.Verified)
					}
				}
			}
			if auto, lookback := spent[definition.ChangesAuto], spent[definition.ChangesLookback]; auto > lookback+looks {
				t.Errorf("%d requests, and %d with changes: lookback", auto, lookback)
			} else {
				t.Logf("%d requests, and %d with changes: lookback", auto, lookback)
			}
		})
	}
}
