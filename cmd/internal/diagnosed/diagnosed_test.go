package diagnosed_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/diagnosed"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/doctor"
)

func report() *doctor.Report {
	return &doctor.Report{
		Pipeline: "nightly", Definition: "nightly.yaml", At: time.Date(2026, 3, 10, 18, 0, 0, 5, time.UTC), Requests: 1,
		Checks: []doctor.Check{
			{Name: "budget", State: doctor.OK, Detail: "the definition sets none"},
			{Name: "zone", Of: "form1", State: doctor.Failed, Detail: "results lie in the\nfuture", Cure: "set source.timezone", Err: &doctor.ZoneError{}},
			{Name: "runs", Of: "/lake/form1/", State: doctor.Failed, Detail: "run 1 is writing there", Cure: "wait", Err: &load.HeldError{}},
			{Name: "conditional writes", Of: "s3://b/", State: doctor.Warning, Detail: "the store ignores them", Cure: "use another store"},
			{Name: "clock", State: doctor.NotChecked, Detail: "no answer came"},
		},
		Honours: &doctor.Honours{API: "v1", Form: "form1", Requests: 2, Rows: []doctor.Row{
			{Asked: "ascending ids", Answer: doctor.Yes, Reason: "on each page", Needed: true},
			{Asked: "fs_min_id", Answer: doctor.NotShown, Reason: "the form has too few results", Needed: true},
		}},
	}
}

// TestText: a line for each check, one for each cure, and a last line that sums up.
func TestText(t *testing.T) {
	const want = `ok           budget              the definition sets none
failed       zone                form1: results lie in the future
                                 cure: set source.timezone
failed       runs                /lake/form1/: run 1 is writing there
                                 cure: wait
warning      conditional writes  s3://b/: the store ignores them
                                 cure: use another store
not checked  clock               no answer came
what the service honours, by API v1 with form form1 alone, asked by 2 requests (nothing of the results stands here):
  yes        ascending ids  on each page
  not shown  fs_min_id      the form has too few results
5 checks: 1 ok, 1 warning, 2 failed, 1 not checked; 1 request sent; it ends with 78
`
	var got bytes.Buffer
	err := diagnosed.Print(&got, report(), false)
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
	if faults, ok := errors.AsType[*doctor.FaultsError](err); !ok || faults.Error() != "2 of 5 checks failed: zone of form1, runs of /lake/form1/" {
		t.Errorf("it ends with %v", err)
	}
}

// TestJSON holds what programs are written against.
func TestJSON(t *testing.T) {
	const want = `{
  "pipeline": "nightly",
  "definition": "nightly.yaml",
  "at": "2026-03-10T18:00:00Z",
  "healthy": true,
  "exit_code": 0,
  "requests": 1,
  "counts": {
    "ok": 1,
    "warnings": 1,
    "failed": 0,
    "not_checked": 0
  },
  "checks": [
    {
      "name": "budget",
      "state": "ok",
      "detail": "the definition sets none",
      "exit_code": 0
    },
    {
      "name": "conditional writes",
      "of": "s3://b/",
      "state": "warning",
      "detail": "the store ignores them",
      "cure": "use another store",
      "exit_code": 0
    }
  ],
  "honours": {
    "api": "v1",
    "form": "form1",
    "requests": 2,
    "rows": [
      {
        "asked": "fs_min_id",
        "answer": "not shown",
        "reason": "the form has too few results",
        "needed": true
      }
    ]
  }
}
`
	r := report()
	r.Checks, r.Honours.Rows = []doctor.Check{r.Checks[0], r.Checks[3]}, r.Honours.Rows[1:]
	var got bytes.Buffer
	if err := diagnosed.Print(&got, r, true); err != nil || got.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, &got, want)
	}
}
