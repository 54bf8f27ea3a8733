package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/formetl/formetl/pipelines/doctor"
)

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
	r := &doctor.Report{
		Pipeline: "nightly", Definition: "nightly.yaml", At: time.Date(2026, 3, 10, 18, 0, 0, 5, time.UTC), Requests: 1,
		Checks: []doctor.Check{
			{Name: "budget", State: doctor.OK, Detail: "the definition sets none"},
			{Name: "conditional writes", Of: "s3://b/", State: doctor.Warning, Detail: "the store ignores them", Cure: "use another store"},
		},
		Honours: &doctor.Honours{API: "v1", Form: "form1", Requests: 2, Rows: []doctor.Row{
			{Asked: "fs_min_id", Answer: doctor.NotShown, Reason: "the form has too few results", Needed: true},
		}},
	}
	var got bytes.Buffer
	if err := printChecklist(&got, r, true); err != nil || got.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, &got, want)
	}
}
