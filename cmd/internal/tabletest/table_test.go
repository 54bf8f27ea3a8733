package tabletest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// An incremental pipeline follows the form: edits, late results, deletions, moved results.
func TestIncremental(t *testing.T) {
	for _, partition := range []string{"partition: none", "partition: day", "partition: month"} {
		t.Run(partition, func(t *testing.T) {
			w := newWorld(t)
			w.options = partition
			w.run()
			w.whole()
			ids := w.ids()
			w.edit(ids[3], "edited", 0)
			w.edit(ids[len(ids)-2], "moved to another day", 2)
			w.form.Delete(ids[40])
			w.insert(1, "late")
			w.insert(9, "new", "blue")
			w.run()
			w.whole()
			w.run()
			w.whole()
			w.run("--full")
			w.whole()
			if runs := w.query("SELECT count(*) FROM forms._formetl_runs WHERE table_name = 'form1'"); runs[0] != "4" {
				t.Errorf("%s runs are recorded", runs[0])
			}
			left := w.query("SELECT watermark IS NOT NULL FROM forms._formetl_runs")
			if slices.Contains(left, "f") {
				t.Error("a run without a watermark")
			}
		})
	}
}

// A pooler that keeps no sessions together is refused before the service is asked for
// anything, and doctor finds it. One in session mode is as good as the server.
func TestPooler(t *testing.T) {
	w := newWorld(t)
	w.port = server.Bouncer(t, "pool_mode = transaction")
	for _, command := range []string{"run", "doctor"} {
		code, stdout, stderr := w.try(command, w.definition())
		if code != exit.Config || !strings.Contains(stdout+stderr, "two connections at once have the server's session") || !strings.Contains(stdout+stderr, "pool_mode = session") {
			t.Errorf("%s ended with %d:\n%s%s", command, code, stdout, stderr)
		}
		if asked := len(w.service.Log()); command == "run" && asked > 0 {
			t.Errorf("the service was asked %d times", asked)
		}
	}
	w.port = server.Bouncer(t, "pool_mode = session")
	w.run()
	w.whole()
	w.formetl("doctor", w.definition())
}

// The dead letters of a table are of what is rejected now.
func TestDeadLetters(t *testing.T) {
	w := newWorld(t)
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
		for range 2 {
			w.run()
			got := w.query("SELECT count(*) FROM forms._formetl_objects WHERE name LIKE '\\_rejects/%'")
			if got[0] != strconv.Itoa(life.want) {
				t.Errorf("life %d: %s objects of dead letters, want %d", i, got[0], life.want)
			}
			w.formetl("verify", w.definition())
		}
	}
	w.whole()
}

// A run that is killed at any point leaves a whole table, and the next one makes the truth.
func TestKilledAtEveryPoint(t *testing.T) {
	program := build(t)
	killedAtEveryPoint(t, newWorld(t), program)
}

func killedAtEveryPoint(t *testing.T, w *world, program string) {
	points := []string{"planned", "piece:3", "read:4", "verified", "snapshot", "staged", "staged:2", "prepared", "prepared:2", "check", "beside:2", "intent", "unmark", "supersede", "supersede:2", "parts", "parts:2", "manifest", "mark", "close"}
	w.program = program
	w.run()
	for round, point := range needs.Sample(points, 7) {
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
		w.holds(before)
		w.run()
		w.whole()
		w.formetl("clean", w.definition())
	}
}

func TestExploded(t *testing.T) {
	w := newWorld(t)
	w.schema = strings.Replace(declared, `"list<string>"}`, `"list<string>", explode: true}`, 1)
	elements := func() []string {
		return w.query("SELECT id, position, colours FROM forms.form1__colours ORDER BY id, position")
	}
	lists := func() []string {
		return w.query("SELECT id, n, c FROM forms.form1, unnest(colours) WITH ORDINALITY AS u(c, n) ORDER BY id, n")
	}
	w.run()
	w.whole()
	if got, want := elements(), lists(); !slices.Equal(got, want) || len(got) < 100 {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	w.edit(w.ids()[7], "edited", 0)
	w.insert(3, "late", "black", "white")
	w.run()
	w.whole()
	if got, want := elements(), lists(); !slices.Equal(got, want) {
		t.Fatalf("after edits %d elements, want %d", len(got), len(want))
	}
}

func TestNewColumnsAndTypes(t *testing.T) {
	w := newWorld(t)
	w.schema = strings.Replace(declared, `    - {name: amount, from: "item:2", type: "decimal(12,2)"}`+"\n", "", 1)
	w.run()
	w.schema = declared
	w.insert(2, "with an amount")
	w.run()
	if got := w.query("SELECT count(*), count(amount) FROM forms.form1"); got[0] != "121|121" {
		t.Errorf("a new column is %s", got[0])
	}
	w.schema = strings.Replace(declared, `"decimal(12,2)"`, "string", 1)
	if code, _, stderr := w.try("run", w.definition()); code != exit.Config {
		t.Fatalf("another type ends with %d:\n%s", code, stderr)
	}
	w.run("--full")
	if got := w.query("SELECT count(DISTINCT pg_typeof(amount)), min(pg_typeof(amount)::text) FROM forms.form1"); got[0] != "1|text" {
		t.Errorf("after --full the column is %s", got[0])
	}
	w.schema = declared
	w.run("--full")
	w.whole()
}

// What the commands say of a table, and that verify finds what somebody changed.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	file := w.definition()
	for _, args := range [][]string{{"validate", file}, {"plan", file}, {"doctor", file}, {"state", "show", file}, {"clean", file}, {"preview", file}, {"schema", "ddl", file, "--dialect", "postgres"}} {
		w.formetl(args...)
	}
	w.run("--report", filepath.Join(w.dir, "report.json"), "--metrics", filepath.Join(w.dir, "metrics.prom"))
	w.run("--report", filepath.Join(w.dir, "report.html"), "--log-level", "debug")
	if out := w.formetl("state", "show", file); !strings.Contains(out, "/"+w.database+"/forms.form1/") || !strings.Contains(out, "120 in 6 parts") {
		t.Errorf("state show says:\n%s", out)
	}
	if out := w.formetl("doctor", file); strings.Contains(out, "failed  ") || !strings.Contains(out, "stages") {
		t.Errorf("doctor says:\n%s", out)
	}
	w.query("UPDATE forms.form1 SET value = upper(value) WHERE id = (SELECT min(id) FROM forms.form1)")
	code, out, _ := w.try("verify", file)
	if code != exit.Data || !strings.Contains(out, "SHA-256") {
		t.Errorf("verify of a changed row ends with %d:\n%s", code, out)
	}
	w.query("DELETE FROM forms.form1 WHERE id IN (SELECT id FROM forms.form1 ORDER BY id DESC LIMIT 3)")
	w.run() // it notices that rows are missing, and reads their part again
	w.formetl("run", file, "--from", "2026-01-01", "--to", "2026-01-02")
	w.whole()
	w.query("DROP TABLE forms.form1")
	w.run("--full")
	w.whole()
	w.formetl("state", "reset", file, "--yes")
	w.run()
	w.whole()
	w.noCanary()
}

// noCanary looks for the password in all files that were written, and in the database.
func (w *world) noCanary() {
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
	for _, table := range []string{"objects", "runs", "leases", "staged"} {
		if got := w.query("SELECT count(*) FROM forms._formetl_" + table + " t WHERE t::text LIKE '%canary%'"); got[0] != "0" {
			w.t.Errorf("_formetl_%s holds the password", table)
		}
	}
}

// What speaks against a table, with its exit code.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.query("CREATE TABLE forms.form1 (mine text); INSERT INTO forms.form1 VALUES ('precious')")
	if code, _, stderr := w.try("run", w.definition()); code != exit.CantCreate || !strings.Contains(stderr, "formetl did not make") {
		t.Errorf("a table of others: %d\n%s", code, stderr)
	}
	if code, out, _ := w.try("doctor", w.definition()); code != exit.CantCreate || !strings.Contains(out, "formetl did not make") {
		t.Errorf("doctor of a table of others: %d\n%s", code, out)
	}
	if code, _, _ := w.try("run", w.definition(), "--full"); code != exit.CantCreate || w.query("SELECT mine FROM forms.form1")[0] != "precious" {
		t.Errorf("a table of others with --full: %d", code)
	}
	w.query("DROP TABLE forms.form1")
	w.schema = strings.Replace(declared, "type: int64", "type: int64, pii: hmac", 1)
	if code, _, stderr := w.try("validate", w.definition()); code != exit.Config || !strings.Contains(stderr, "the result's id") {
		t.Errorf("an id that nobody shall see: %d\n%s", code, stderr)
	}
	w.schema = declared
	w.run()
	w.query("ALTER TABLE forms.form1 ALTER COLUMN amount TYPE text")
	if code, _, stderr := w.try("run", w.definition()); code != exit.Config || !strings.Contains(stderr, `"amount"`) {
		t.Errorf("an altered column: %d\n%s", code, stderr)
	}
	w.query("ALTER TABLE forms.form1 ALTER COLUMN amount TYPE numeric(12,2) USING amount::numeric")
	w.run()
	w.whole()
	w.query("CREATE VIEW forms.v AS SELECT amount FROM forms.form1") // views do not disturb runs
	w.insert(3, "late")
	w.run()
	w.whole()
}

// Two definitions beside each other: forms by a glob, and a password within the dsn.
func TestFormsByGlob(t *testing.T) {
	w := newWorld(t)
	w.run()
	file := filepath.Join(w.dir, "glob.yaml")
	text, err := os.ReadFile(w.definition())
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("forms: [form1]", `forms: ["form*"]`, "name: feedback", "name: feedback").Replace(string(text))
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.formetl("state", "show", file); !strings.Contains(out, "form form1") {
		t.Errorf("state show finds no form:\n%s", out)
	}
	w.formetl("run", file, "--log-level", "error")
	w.formetl("verify", file)
}

// What is read lies beside the table, so that a run on another host resumes.
func TestCheckpointAtTheTable(t *testing.T) {
	w := newWorld(t)
	w.program = build(t)
	w.schema = "checkpoint: destination\n" + declared
	if !w.killed("verified") {
		t.Fatal("the run was not killed")
	}
	if w.control() == "0" {
		t.Error("no checkpoint lies beside the table")
	}
	if err := os.RemoveAll(filepath.Join(w.dir, ".formetl")); err != nil {
		t.Fatal(err)
	}
	if out := w.formetl("state", "show", w.definition()); !strings.Contains(out, "resume") {
		t.Errorf("state show says:\n%s", out)
	}
	w.run()
	w.whole()
	if n := w.control(); n != "0" {
		t.Errorf("%s objects are left", n)
	}
}

// Two runs at once: one gets the table, and the other ends with 75.
func TestTwoRuns(t *testing.T) {
	w := newWorld(t)
	w.definition()
	codes := make(chan int)
	for range 2 {
		go func() {
			code, _, _ := w.try("run", filepath.Join(w.dir, "feedback.yaml"), "--log-level", "error")
			codes <- code
		}()
	}
	got := []int{<-codes, <-codes}
	slices.Sort(got)
	if got[0] != 0 || got[1] != exit.Temporary && got[1] != 0 {
		t.Errorf("the runs end with %v", got)
	}
	w.whole()
}

func TestPasswordInDSN(t *testing.T) {
	w := newWorld(t)
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
		"a password in an address":  {strings.Replace(dsn, "PASSWORD", "canary", 1), exit.Config},
		"a password in keywords":    {"host=127.0.0.1 password=canary", exit.Config},
		"an unset variable":         {"${env:NOTHING}", exit.Config},
		"no connection string":      {"${env:PGPASS}", exit.Config},
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
