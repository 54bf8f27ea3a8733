package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/cli"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// tableWorld is a form service over HTTP, a database, and a definition from the one to the other.
type tableWorld struct {
	t        *testing.T
	database string
	url      string
	dir      string
	form     *formservice.Form
	options  string // of the definition's output
	schema   string // of the definition
	extract  string
	program  string // formetl with its fault points, "" to run commands in this process
	service  *formservice.Server
}

const declared = `schema:
  unknown: ignore
  columns:
    - {name: id, from: result_id, type: int64}
    - {name: value, from: "item:1", type: string}
    - {name: amount, from: "item:2", type: "decimal(12,2)"}
    - {name: finished, from: "meta:date_finish", type: timestamp}
    - {name: colours, from: "item:3", type: "list<string>"}
`

func newTableWorld(t *testing.T) *tableWorld {
	t.Helper()
	w := &tableWorld{
		t: t, database: shared.Database(t), dir: t.TempDir(), schema: declared, options: "partition: day",
		extract: "mode: incremental, from: 2026-01-01, to: 2026-02-01, lookback: 60d, changes: lookback",
	}
	w.form = formservice.NewForm("form1", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Value"}, {ID: "2", Type: "text", Index: 2, Label: "Amount"}, {ID: "3", Type: "checkbox", Index: 3, Label: "Colours"},
	}, nil)
	w.form.Metas = []string{"date_finish"}
	for day := 1; day <= 6; day++ {
		for i := range 20 {
			w.insert(day, fmt.Sprintf("value %d of day %d", i, day))
		}
	}
	w.service = &formservice.Server{Key: testKey, Forms: []*formservice.Form{w.form}}
	server := httptest.NewServer(w.service)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// insert adds a result of a day.
func (w *tableWorld) insert(day int, value string, colours ...string) int64 {
	w.t.Helper()
	n := w.form.Len()
	if len(colours) == 0 {
		colours = []string{"red", `gr"een`, "a\\b,{}"}[:n%3+1]
	}
	at := time.Date(2026, 1, day, n%24, n%60, 30, 0, time.UTC)
	id, err := w.form.Insert(formservice.Result{
		Metas: []formservice.Meta{{ID: "date_finish", Value: at.Format(formservice.WallTime)}},
		Items: []formservice.Answer{{ID: "1", Values: []string{value}}, {ID: "2", Values: []string{strconv.Itoa(n) + ".25"}}, {ID: "3", Values: colours}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// edit gives a result another value and, where day is not 0, another day.
func (w *tableWorld) edit(id int64, value string, day int) {
	w.t.Helper()
	r, _ := w.form.Get(id)
	r.Items[0].Values = []string{value}
	if day != 0 {
		r.Metas = []formservice.Meta{{ID: "date_finish", Value: time.Date(2026, 1, day, 23, 0, 0, 0, time.UTC).Format(formservice.WallTime)}}
	}
	if err := w.form.Update(r); err != nil {
		w.t.Fatal(err)
	}
}

// ids are those of the form's results.
func (w *tableWorld) ids() (ids []int64) {
	w.form.Each(func(r formservice.Result) bool {
		ids = append(ids, r.ID)
		return true
	})
	return ids
}

// dsn is what the definition refers to.
func (w *tableWorld) dsn() string {
	return shared.DSN(w.database, "sslmode=disable")
}

// definition writes the definition.
func (w *tableWorld) definition() string {
	w.t.Helper()
	file := filepath.Join(w.dir, "feedback.yaml")
	text := fmt.Sprintf(`version: 1
name: feedback
source: {base_url: %q, account: acme, timezone: UTC}
forms: [form1]
extract: {%s}
%sload:
  - {database: postgres, dsn: "${env:PG}", table: "forms.{form}", %s}
`, w.url, w.extract, w.schema, w.options)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// try runs a command and gives its exit code and what it wrote.
func (w *tableWorld) try(args ...string) (code int, stdout, stderr string) {
	w.t.Helper()
	var out, log bytes.Buffer
	env := map[string]string{"FORMETL_API_KEY": testKey, "PG": w.dsn(), "PGPASS": needs.PostgresPassword}
	code = cli.Main(args, strings.NewReader(""), &out, &log, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	for _, text := range []string{out.String(), log.String()} {
		if strings.Contains(text, needs.PostgresPassword) || strings.Contains(text, "canary") {
			w.t.Errorf("formetl %v shows the password:\n%s", args, text)
		}
	}
	return code, out.String(), log.String()
}

// formetl runs a command that ends well.
func (w *tableWorld) formetl(args ...string) string {
	w.t.Helper()
	code, stdout, stderr := w.try(args...)
	if code != 0 {
		w.t.Fatalf("formetl %v ended with %d:\n%s", args, code, stderr)
	}
	return stdout
}

func (w *tableWorld) run(flags ...string) {
	w.t.Helper()
	w.formetl(append([]string{"run", w.definition(), "--log-level", "error"}, flags...)...)
}

// query runs a statement and gives its rows.
func (w *tableWorld) query(sql string) []string {
	w.t.Helper()
	out, err := shared.Query(w.database, sql)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

// truth is what the table must hold now: a line for each result, in the order of ids.
func (w *tableWorld) truth() []string {
	lines := []string{}
	w.form.Each(func(r formservice.Result) bool {
		value, _ := r.Values("1")
		amount, _ := r.Values("2")
		colours, _ := r.Values("3")
		finished, _ := r.Meta("date_finish")
		list, _ := json.Marshal(colours)
		lines = append(lines, strings.Join([]string{strconv.FormatInt(r.ID, 10), value[0], amount[0], finished, string(list)}, "|"))
		return true
	})
	slices.SortFunc(lines, func(a, b string) int {
		x, _ := strconv.Atoi(a[:strings.IndexByte(a, '|')])
		y, _ := strconv.Atoi(b[:strings.IndexByte(b, '|')])
		return x - y
	})
	return lines
}

// held is what the table holds, in the same spelling.
func (w *tableWorld) held() []string {
	w.t.Helper()
	return w.query(`SELECT id, value, amount, to_char(finished AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), to_jsonb(colours)::text FROM forms.form1 ORDER BY id`)
}

// whole checks that the table holds the truth, that it is sound, and that nothing is left over.
func (w *tableWorld) whole() {
	w.t.Helper()
	w.holds(w.truth())
	w.formetl("verify", w.definition())
	if left := w.query(`SELECT count(*) FROM pg_class WHERE relname LIKE '\_formetl\_staged\_%' AND relkind = 'r'`); left[0] != "0" {
		w.t.Errorf("%s staging tables are left", left[0])
	}
}

func (w *tableWorld) holds(want []string) {
	w.t.Helper()
	got := w.held()
	for i := range want {
		want[i] = normal(want[i])
	}
	for i := range got {
		got[i] = normal(got[i])
	}
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				w.t.Fatalf("row %d is %q and not %q; there are %d rows for %d", i, got[i], want[i], len(got), len(want))
			}
		}
		w.t.Fatalf("the table has %d rows, want %d", len(got), len(want))
	}
}

// normal spells lists in JSON alike.
func normal(line string) string { return strings.ReplaceAll(line, `", "`, `","`) }

// killed runs the real program into a fault point, and tells whether it came there.
func (w *tableWorld) killed(fault string) bool {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program, "run", w.definition())
	cmd.Env = append(os.Environ(), "FORMETL_API_KEY="+testKey, "PG="+w.dsn(), "FORMETL_FAULT="+fault, "HOME="+w.dir, "TZ=UTC")
	out, err := cmd.CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err == nil {
		return false
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !failed || !ok || status.Signal() != syscall.SIGKILL {
		w.t.Fatalf("the run into %s: %v\n%s", fault, err, out)
	}
	return true
}

// build builds the program as it is shipped, with fault points.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "formetl")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "formetl_faults", "-o", program, "../../formetl")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build formetl: %v\n%s", err, out)
	}
	return program
}
