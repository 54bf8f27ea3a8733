package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// The dead letters of a table are of what is rejected now, and the run that rejects tells of them.
func TestDeadLetters(t *testing.T) {
	w := newTableWorld(t)
	amount := func(id int64, text string) {
		r, _ := w.form.Get(id)
		r.Items[1].Values = []string{text}
		if err := w.form.Update(r); err != nil {
			t.Fatal(err)
		}
	}
	ids := w.ids()
	for i, life := range []struct {
		do   func()
		want int // days with dead letters
	}{
		{func() { amount(ids[3], "many"); amount(ids[4], "few"); amount(ids[50], "none") }, 2},
		{func() { amount(ids[3], "3.00"); amount(ids[50], "0.00") }, 1},
		{func() { w.form.Delete(ids[4]) }, 0},
	} {
		life.do()
		for run := range 2 {
			_, _, log := w.try("run", w.definition())
			if told := strings.Contains(log, "dead_letters=formetl.rejects"); told != (life.want > 0) {
				t.Errorf("life %d, run %d tells of rejects: %v", i, run, told)
			}
			got := w.query("SELECT count(DISTINCT part) FROM formetl.rejects")
			if got[0] != strconv.Itoa(life.want) {
				t.Errorf("life %d: %s parts with dead letters, want %d", i, got[0], life.want)
			}
			w.formetl("verify", w.definition())
		}
	}
	w.whole()
}

// A run that is killed at any point leaves a whole table, and the next one makes the truth.
func TestKilledAtEveryPoint(t *testing.T) {
	w := newTableWorld(t)
	w.program = build(t)
	points := []string{"planned", "piece:3", "read:4", "verified", "snapshot", "load", "loaded"}
	w.run()
	for round, point := range needs.Sample(points, 4) {
		before := w.held()
		ids := w.ids()
		w.edit(ids[round%40], "edited before "+point, 0)
		w.edit(ids[len(ids)-1-round%5], "moved before "+point, 1+round%6)
		w.insert(1+round%12, "late before "+point)
		w.form.Delete(ids[20+round])
		if !w.killed(point) {
			t.Errorf("the run does not come to %s", point)
			continue
		}
		if point != "loaded" {
			w.holds(before)
		}
		w.run()
		w.whole()
		w.formetl("clean", w.definition())
	}
}

// The table of uploaded files is right after edits and deletions, also where files: came later
// than the table, and where somebody dropped the table of files.
func TestTableOfFiles(t *testing.T) {
	w := newTableWorld(t)
	w.service.Files = true
	for i, r := range w.ids()[:3] {
		w.answer(r, fmt.Sprintf("%sf-1-3-%d_a.pdf", formservice.MadeFiles, i), "none", formservice.MadeFiles+"sig-1-3.png")
	}
	ids := w.ids()
	w.run()
	w.schema = fmt.Sprintf("files: {path: %q}\n", filepath.Join(w.dir, "files")+"/") + strings.Replace(declared, "  columns:\n", "  columns:\n    - {name: updated, from: \"meta:date_update\", type: timestamp}\n", 1)
	list := func(when string, want ...string) {
		t.Helper()
		_, _, log := w.try("run", w.definition())
		if all := strings.Contains(log, "this run reads all results again"); all == (when == "edits and a deletion") || strings.Contains(log, "damaged") {
			t.Errorf("%s: the log is\n%s", when, log)
		}
		got := w.query(`SELECT f.id, item, n, name, status, bytes > 0 AND length(sha256) = 64 AND path LIKE f.id || '/%' FROM forms.form1__files f ORDER BY 1, 2, 3`)
		for i := range want {
			want[i] = strings.NewReplacer("%1", fmt.Sprint(ids[0]), "%2", fmt.Sprint(ids[1]), "%3", fmt.Sprint(ids[2])).Replace(want[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the table of files holds\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		w.formetl("verify", w.definition())
	}
	list("files: came later",
		"%1|3|1|f-1-3-0_a.pdf|stored|t", "%1|3|3|sig-1-3.png|stored|t",
		"%2|3|1|f-1-3-1_a.pdf|stored|t", "%2|3|3|sig-1-3.png|stored|t",
		"%3|3|1|f-1-3-2_a.pdf|stored|t", "%3|3|3|sig-1-3.png|stored|t")
	if key := w.query("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'forms.form1__files'::regclass AND contype = 'p'"); key[0] != "PRIMARY KEY (id, item, n)" {
		t.Errorf("the key is %s", key)
	}
	w.service.SetFaults("file-missing=1")
	w.answer(ids[0], "none", formservice.MadeFiles+"f-1-3-0_a.pdf")
	w.answer(ids[1], "none")
	w.form.Delete(ids[2])
	list("edits and a deletion", "%1|3|2|f-1-3-0_a.pdf|missing|")
	w.query("DROP TABLE forms.form1__files")
	if _, out, _ := w.try("verify", w.definition()); !strings.Contains(out, ": 1 problem\n  missing     forms.form1__files: some of its rows are missing\n") {
		t.Errorf("verify says:\n%s", out)
	}
	w.answer(ids[1], formservice.MadeFiles+"f-1-3-8_b.pdf")
	list("the table was dropped", "%1|3|2|f-1-3-0_a.pdf|missing|", "%2|3|1|f-1-3-8_b.pdf|missing|")
	if left, err := filepath.Glob(filepath.Join(w.dir, "files", "[0-9]*")); err != nil || len(left) > 0 {
		t.Errorf("there is left %v, %v", left, err)
	}
}

// answer gives a result other values of item 3.
func (w *tableWorld) answer(id int64, values ...string) {
	w.t.Helper()
	r, _ := w.form.Get(id)
	r.Items[2].Values = values
	if err := w.form.Update(r); err != nil {
		w.t.Fatal(err)
	}
}

// What the commands say of a table, and that verify finds what somebody changed.
func TestCommands(t *testing.T) {
	w := newTableWorld(t)
	file := w.definition()
	for _, args := range [][]string{{"validate", file}, {"plan", file}, {"doctor", file}, {"state", "show", file}, {"clean", file}, {"preview", file}, {"schema", "ddl", file, "--dialect", "postgres"}} {
		w.formetl(args...)
	}
	w.run("--report", filepath.Join(w.dir, "report.json"), "--metrics", filepath.Join(w.dir, "metrics.prom"))
	w.run("--report", filepath.Join(w.dir, "report.html"), "--log-level", "debug")
	w.insert(6, "", "blue")
	w.run()
	if got := strings.Join(w.query("SELECT col_description('forms.form1'::regclass, 5)"), "|"); got != `Colours|Choices: a\b,{}; blue; gr"een; red` {
		t.Errorf("the comment is %s", got)
	}
	if out := w.formetl("state", "show", file); !strings.Contains(out, "/"+w.database+"/forms.form1/") || !strings.Contains(out, "121 in 6 parts") {
		t.Errorf("state show says:\n%s", out)
	}
	if out := w.formetl("doctor", file); strings.Contains(out, "failed  ") || !strings.Contains(out, "the table can be loaded") {
		t.Errorf("doctor says:\n%s", out)
	}
	w.query("DELETE FROM forms.form1 WHERE id IN (SELECT id FROM forms.form1 ORDER BY id DESC LIMIT 3)")
	code, out, _ := w.try("verify", file)
	if code != console.ExitData || !strings.Contains(out, "some of its rows are missing") || !strings.Contains(out, "formetl run "+file+"\n") {
		t.Errorf("verify where rows are missing ends with %d:\n%s", code, out)
	}
	w.run() // it notices that rows are missing, and reads their part again
	w.formetl("run", file, "--from", "2026-01-01", "--to", "2026-01-02")
	w.whole()
	w.query("DROP TABLE forms.form1")
	w.run()
	w.whole()
	w.query("ALTER TABLE forms.form1 DROP COLUMN amount")
	if code, out, _ := w.try("verify", file); code != console.ExitData || !strings.Contains(out, `it no longer has the column "amount"`) || !strings.Contains(out, "--full") {
		t.Errorf("verify where a column is missing ends with %d:\n%s", code, out)
	}
	w.run("--full")
	w.query("UPDATE forms.form1 SET value = upper(value) WHERE id = (SELECT min(id) FROM forms.form1)")
	w.run("--full")
	w.whole()
	w.formetl("state", "reset", file, "--yes")
	w.run()
	w.whole()
	w.noCanary()
}

// noCanary looks for the password in all files that were written, and in the database.
func (w *tableWorld) noCanary() {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "canary") || strings.Contains(path, "canary") {
			w.t.Errorf("%s holds the password", path)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	for _, table := range []string{"datasets", "parts", "runs", "leases", "rejects"} {
		if got := w.query("SELECT count(*) FROM formetl." + table + " t WHERE t::text LIKE '%canary%'"); got[0] != "0" {
			w.t.Errorf("formetl.%s holds the password", table)
		}
	}
}

func TestPasswordInDSN(t *testing.T) {
	w := newTableWorld(t)
	dsn := strings.Replace(w.dsn(), "canary-Pg7pass%3A%2Fword", "PASSWORD", 1)
	text, err := os.ReadFile(w.definition())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dsn  string
		code int
	}{
		"a reference in an address": {strings.Replace(dsn, "PASSWORD", "${env:PGPASS}", 1), 0},
		"a reference in keywords":   {"host=127.0.0.1 port=" + strings.Split(strings.Split(dsn, "127.0.0.1:")[1], "/")[0] + " user=loader dbname=" + w.database + " password=${env:PGPASS}", 0},
		"a password in an address":  {strings.Replace(dsn, "PASSWORD", "canary", 1), console.ExitConfig},
		"a password in keywords":    {"host=127.0.0.1 password=canary", console.ExitConfig},
		"an unset variable":         {"${env:NOTHING}", console.ExitConfig},
		"no connection string":      {"${env:PGPASS}", console.ExitConfig},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(w.dir, "dsn.yaml")
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), "${env:PG}", c.dsn, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			code, _, stderr := w.try("run", file, "--log-level", "error")
			if code != c.code {
				t.Errorf("it ends with %d, want %d:\n%s", code, c.code, stderr)
			}
		})
	}
}
