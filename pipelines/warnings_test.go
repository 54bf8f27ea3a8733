package pipelines_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// withLongAnswer is a world whose form has an answer that no cell can hold.
func withLongAnswer(t *testing.T) *world {
	t.Helper()
	answers := []string{"short", strings.Repeat("long ", 8000), "last"}
	results := make([]formservice.Result, len(answers))
	for i, a := range answers {
		results[i] = formservice.Result{
			ID: int64(i + 1), Metas: []formservice.Meta{{ID: "date_finish", Value: "2026-01-02 03:04:05"}},
			Items: []formservice.Answer{{ID: "1", Values: []string{a}}},
		}
	}
	return newWorld(t, formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Remarks"}}, results))
}

// TestWorkbookRefusesWhatItCannotHold: the run fails with the place and the way
// out, the file of before stays, and nothing is left of the attempt.
func TestWorkbookRefusesWhatItCannotHold(t *testing.T) {
	w := withLongAnswer(t)
	o := options()
	def := w.definition(definition.Output{Path: "form1.xlsx", Format: "xlsx"})
	if err := os.WriteFile(w.path("form1.xlsx"), []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := pipelines.Run(t.Context(), def, o)
	var refused *load.CellError
	if !errors.As(err, &refused) || refused.Column != "item_1" || refused.Row != 3 || refused.Result != "2" || !strings.Contains(err.Error(), "write csv or parquet") {
		t.Fatalf("the run gives %v", err)
	}
	if data, err := os.ReadFile(w.path("form1.xlsx")); err != nil || string(data) != "before" {
		t.Errorf("the file is %.20q, %v", data, err)
	}
	if _, err := os.Stat(w.path("state")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state folder is left: %v", err)
	}
}

// TestWorkbookOfARun: a run's workbook has the cells that its CSV has, a column
// for each choice among them.
func TestWorkbookOfARun(t *testing.T) {
	w := newWorld(t, colourForm())
	w.run(w.coloured(schemas.Column{ListAs: schemas.ListColumns, Choices: []string{"red", "never"}},
		definition.Output{Path: "f.csv", Format: "csv"}, definition.Output{Path: "f.xlsx", Format: "xlsx"}))
	book, err := excelize.OpenFile(w.path("f.xlsx"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	rows, err := book.GetRows("Results")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, row := range rows {
		row = append(row, make([]string, len(rows[0])-len(row))...) // cells that are not there
		got.WriteString(strings.Join(row, ",") + "\n")
	}
	want := strings.NewReplacer("true", "TRUE", "false", "FALSE").Replace(w.read("f.csv"))
	if got.String() != want {
		t.Errorf("the cells are\n%s, not\n%s", &got, want)
	}
}
