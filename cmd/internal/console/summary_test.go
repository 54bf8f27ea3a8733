package console

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas"
)

// TestLogOfChanges: one line a change, with what applies, and no more of them
// than people read.
func TestLogOfChanges(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	changes := slices.Repeat([]schemas.Change{{Kind: schemas.ColumnAdded, From: "item:9"}}, mostChanges+21)
	changes[0] = schemas.Change{Kind: schemas.ColumnRemoved, From: "item:3", Column: "fax", Was: "string", Label: "Fax", Breaking: true}
	NewLog(io.Discard, nil).LogForm(t.Context(), log, &pipelines.FormReport{Changes: changes})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != mostChanges+2 { // and the form's own
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for i, want := range map[int]string{
		0:           `"level":"WARN","msg":"the form or its schema changed: a column's question or field is gone","change":"removed","from":"item:3","breaking":true,"column":"fax","was":"string","label":"Fax","hint":"if the schema lists the column, it stays empty: correct its id there; or, if the question is gone, remove it (unless unknown: add is set, run with --full then)"}`,
		1:           `"level":"WARN","msg":"the form or its schema changed: a new question or field is left out, as the schema does not list it","change":"added","from":"item:9","breaking":false}`,
		mostChanges: `"level":"WARN","msg":"the form has more changes than are logged; add --report FILE to see them all","changes":71}`,
	} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
}

// TestSummaryOfForms: each form is told with the requests that it took, and not with those
// of the run.
func TestSummaryOfForms(t *testing.T) {
	var out bytes.Buffer
	NewLog(&out, nil).Summarize(&pipelines.Report{
		API:      "v1",
		Requests: pipelines.RunRequests{Requests: load.Requests{Results: 9, Count: 5, Retries: 1}, Other: 1},
		Forms: []*pipelines.FormReport{
			{Form: "feedback", Requests: load.Requests{Results: 7, Count: 3, Retries: 1}},
			{Form: "orders", Requests: load.Requests{Results: 2, Count: 2}},
		},
	}, false)
	for _, want := range []string{"feedback: not verified; all dates; times in ; 11 requests by API v1\n", "orders: not verified; all dates; times in ; 4 requests by API v1\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, &out)
		}
	}
}
