package pipelines_test

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/duckdb"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

// booking is a result for schemas/examples/bookings.yaml: the answers to its
// items 1 to 7, "-" for none.
func booking(id int64, finished string, answers ...string) formservice.Result {
	r := formservice.Result{ID: id, Metas: []formservice.Meta{{ID: "date_finish", Value: finished}}}
	for i, a := range answers {
		if a != "-" {
			r.Items = append(r.Items, formservice.Answer{ID: fmt.Sprint(i + 1), Type: "text", Index: i + 1, Values: strings.Split(a, "|")})
		}
	}
	return r
}

// bookings are results of which some are written otherwise than declared.
func bookings() *formservice.Form {
	return formservice.NewForm("form1", nil, []formservice.Result{
		booking(1, "2026-01-01 10:00:00", "12/31/2025", "24.12.1970", "5.1.2026 7:05 Uhr", "1.234,50", "12'345", "JA", "01/02/2026|1/3/2026"),
		booking(2, "2026-01-01 11:00:00", "02/29/2024", "3 dec 1999", "08.03.2026 02:30 Uhr", "-1234,5", "12345", "No", "-"),
		booking(3, "2026-01-01 12:00:00", "01/01/2026", "1970-12-24", "5.1.2026 7:05", "0,01", "12'34", " nein ", ""),
		booking(4, "2026-01-01 13:00:00", "31/12/2025", "-", "-", "-", "-", "-", "-"),
		booking(5, "2026-01-01 14:00:00", "-", "-", "-", "-", "-", "-", "-"),
		booking(6, "2026-01-01 15:00:00", "", "-", "-", "-", "-", "-", "-"),
		booking(7, "2026-01-01 16:00:00", "12/31/2025", "-", "-", "1,234.50", "-", "-", "-"),
		booking(8, "2026-01-01 17:00:00", "12/31/2025", "-", "-", "1,005", "-", "-", "-"),
		booking(9, "2026-01-01 18:00:00", "12/31/2025", "-", "-", "-", "-", "true", "-"),
		booking(10, "2026-01-01 19:00:00", "12/31/2025", "-", "-", "-", "-", "-", "1/1/2026|2/30/2026"),
	})
}

// TestDeclaredForms takes the example schema through a run: every value is
// read as declared, or counted by column and reason, and no other.
func TestDeclaredForms(t *testing.T) {
	w := newWorld(t, bookings())
	def := w.definition(definition.Output{Path: "b.csv", Format: "csv"}, definition.Output{Path: "b.parquet", Format: "parquet"})
	schema, err := definition.LoadSchema("../schemas/examples/bookings.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	def.Schema = schema
	f := w.run(def).Forms[0]

	want := `id,finished,arrival,born,calls_at,price,points,parking,days
1,2026-01-01T10:00:00-06:00,2025-12-31,1970-12-24,2026-01-05T07:05:00-06:00,1234.50,12345,true,2026-01-02|2026-01-03
2,2026-01-01T11:00:00-06:00,2024-02-29,1999-12-03,2026-03-08T03:30:00-05:00,-1234.50,12345,false,
3,2026-01-01T12:00:00-06:00,2026-01-01,,,0.01,,false,""
`
	csv, err := os.ReadFile(w.path("b.csv"))
	if got := string(csv); err != nil || got != want {
		t.Errorf("CSV (%v):\n%s\nwant:\n%s", err, csv, want)
	}

	counts := func(list []reading.FaultCount) string {
		lines := make([]string, len(list))
		for i, c := range list {
			lines[i] = fmt.Sprintf("%s %d %s", c.Column, c.Count, c.Reason)
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	if got, want := counts(f.Rejects), "arrival 1 not a date in a declared format\narrival 2 no value\ndays 1 not a date in a declared format\n"+
		"parking 1 not one of the declared words\nprice 1 more fraction digits than the decimal's scale\nprice 1 not a number with the declared separators"; got != want {
		t.Errorf("rejects:\n%s", got)
	}
	if got, want := counts(f.Nulled), "born 1 not a date in a declared format\ncalls_at 1 not a time in a declared format\npoints 1 not a number with the declared separators"; got != want {
		t.Errorf("nulled:\n%s", got)
	}
	raws := map[string]bool{}
	for _, letter := range readNDJSON(t, w.path("b.csv.rejects.jsonl")) {
		raws[fmt.Sprintf("%v %v %v", letter["result_id"], letter["column"], letter["raw"])] = true
	}
	for _, letter := range []string{"4 arrival 31/12/2025", "5 arrival ", "6 arrival ", "7 price 1,234.50", "8 price 1,005", "9 parking true", "10 days 2/30/2026"} {
		if !raws[letter] || len(raws) != 7 {
			t.Errorf("dead letters %v lack %q", raws, letter)
		}
	}
	t.Run("DuckDB", func(t *testing.T) { w.checkDeclaredParquet(duckdb.Open(t)) })
}

// checkDeclaredParquet reads the Parquet file with an engine of others.
func (w *world) checkDeclaredParquet(db *sql.DB) {
	w.t.Helper()
	query := "SELECT string_agg(concat_ws(' ', id, epoch(finished)::BIGINT, arrival, coalesce(born::TEXT, '-'), coalesce(epoch(calls_at)::BIGINT::TEXT, '-'), price, coalesce(points::TEXT, '-'), parking, coalesce(days::TEXT, '-')), chr(10) ORDER BY id)," +
		" any_value(concat_ws(' ', typeof(finished), typeof(arrival), typeof(price), typeof(points), typeof(parking), typeof(days))) FROM read_parquet('" + w.path("b.parquet") + "')"
	var rows, types string
	if err := db.QueryRowContext(w.t.Context(), query).Scan(&rows, &types); err != nil {
		w.t.Fatal(err)
	}
	if want := `1 1767283200 2025-12-31 1970-12-24 1767618300 1234.50 12345 true [2026-01-02, 2026-01-03]
2 1767286800 2024-02-29 1999-12-03 1772958600 -1234.50 12345 false -
3 1767290400 2026-01-01 - - 0.01 - false []`; rows != want {
		w.t.Errorf("Parquet:\n%s\nwant:\n%s", rows, want)
	}
	if types != "TIMESTAMP WITH TIME ZONE DATE DECIMAL(12,2) BIGINT BOOLEAN DATE[]" {
		w.t.Errorf("types %s", types)
	}
}
