package workertest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/pgserver"
)

// newTable is a world whose output is a table of PostgreSQL.
func newTable(t *testing.T, s settings, forms ...*formservice.Form) (*world, func(form *formservice.Form)) {
	t.Helper()
	need(t)
	server := pgserver.Start(t)
	database := server.Database(t)
	s.load = `{database: postgres, dsn: "${env:PG}", table: "forms.{form}", partition: day}`
	w := newWorld(t, s, forms...)
	w.secrets = []string{"PG=" + server.DSN(database, "sslmode=disable")}
	return w, func(form *formservice.Form) {
		t.Helper()
		rows, err := server.Query(database, "SELECT id || ' ' || value FROM forms."+form.Directory+" ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		form.Each(func(r formservice.Result) bool {
			fmt.Fprintf(&want, "%d %s\n", r.ID, r.Items[0].Values[0])
			return true
		})
		if strings.TrimSpace(rows) != strings.TrimSpace(want.String()) {
			t.Errorf("the table holds %d bytes of rows, and the form %d", len(rows), want.Len())
		}
	}
}

// TestTable has a worker load a table. A run beside them is refused.
func TestTable(t *testing.T) {
	t.Parallel()
	w, check := newTable(t, settings{concurrency: 2}, january("form1", 150))
	w.service.SetFaults(formservice.Faults{Latency: 50 * time.Millisecond})
	w.worker()
	w.worker()
	flow := w.workflow("--wait")
	w.after(20, flow)
	if run := w.formetl("run", w.definition()); run.code() != 75 || !strings.Contains(run.output.String(), "of pipeline "+w.name) {
		t.Errorf("a run meanwhile ends with %d:\n%s", run.code(), run.output)
	}
	if code := flow.code(); code != 0 {
		t.Fatalf("the workflow ends with %d", code)
	}
	check(w.forms[0])
	for _, args := range [][]string{{"verify", w.definition()}, {"run", w.definition()}, {"clean", w.definition()}} {
		if code := w.formetl(args...).code(); code != 0 {
			t.Errorf("%s ends with %d", args[0], code)
		}
	}
	check(w.forms[0])
	w.checkSecrets(w.histories())
}

// TestTableKilled kills the worker with -9 when a share is staged, and the next one when all
// is committed. The third one ends the run.
func TestTableKilled(t *testing.T) {
	need(t)
	needs.Long(t)
	t.Parallel()
	w, check := newTable(t, settings{concurrency: 2}, january("form1", 150))
	flow := (*program)(nil)
	for _, point := range []string{"prepared:2", "manifest"} {
		dead := w.start(shared.worker, w.environment("FORMETL_FAULT="+point, "XDG_CACHE_HOME="+t.TempDir()), "run", "--task-queue", w.name, "--definitions", w.dir)
		if flow == nil {
			flow = w.workflow("--wait")
		}
		if code := dead.code(); code == 0 {
			t.Errorf("the worker was not killed at %s", point)
		}
	}
	last := w.worker()
	if code := flow.code(); code != 0 {
		t.Errorf("the workflow ends with %d", code)
	}
	check(w.forms[0])
	last.signal(syscall.SIGTERM)
	if code := last.code(); code != 0 {
		t.Errorf("the worker ends with %d", code)
	}
}
