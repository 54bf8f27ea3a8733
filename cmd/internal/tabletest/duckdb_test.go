//go:build duckdb

package tabletest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/duckdb"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// serveReaders makes this program the reader of a test's database, in its process.
func serveReaders() { duckdb.Serve() }

// moreTags are those that formetl is built with besides.
const moreTags = ",duckdb"

// fileStores makes stores of DuckDB.
func fileStores() map[string]func(t *testing.T) store {
	return map[string]func(t *testing.T) store{"duckdb": duckdbStore}
}

func duckdbStore(t *testing.T) store {
	t.Helper()
	return duckdbStoreIn(t, filepath.Join(t.TempDir(), "warehouse.duckdb"))
}

func duckdbStoreIn(t *testing.T, file string) store {
	t.Helper()
	client := duckdb.NewClient(t)
	return store{
		output: `database: duckdb, path: "` + filepath.ToSlash(file) + `"`, shown: filepath.ToSlash(file) + "/forms.form1/",
		query: func(sql string) ([]string, error) { return client.Query(file, sql) },
		rows:  `SELECT id, value, amount, finished, to_json(colours)::text FROM forms.form1 ORDER BY id`,
		lists: "SELECT id, n, colours[n] FROM (SELECT id, colours, unnest(generate_series(1, len(colours))) AS n FROM forms.form1) ORDER BY id, n",
		types: "SELECT count(DISTINCT typeof(amount)), min(typeof(amount)) FROM forms.form1",
		control: func() (n int) {
			err := filepath.WalkDir(filepath.Join(file+".formetl", "forms.form1"), func(_ string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					n++
				}
				return err
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			return n
		},
		text: "VARCHAR",
	}
}

// Runs are killed at any moment, and a reader polls all the time. All rows have one round's
// value, and there are as many as that round had: a reader sees whole runs alone.
func TestPolledAndKilledAnywhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "warehouse.duckdb")
	w := newWorldAt(t, duckdbStoreIn(t, file))
	w.program = build(t)
	rounds := needs.Count(t, 30, 6)
	counts := map[string]string{} // of rows, by the round
	var mu sync.Mutex
	begin := func(round int) {
		for _, id := range w.ids() {
			w.edit(id, fmt.Sprintf("round %02d", round), 0)
		}
		w.insert(1+round%6, fmt.Sprintf("round %02d", round))
		mu.Lock()
		defer mu.Unlock()
		counts[fmt.Sprintf("round %02d", round)] = strconv.Itoa(w.form.Len())
	}
	begin(0)
	began := time.Now()
	if w.killedAfter(time.Minute) {
		t.Fatal("the first run takes longer than a minute")
	}
	whole := time.Since(began)
	ctx, stop := context.WithCancel(t.Context())
	reader := duckdb.NewClient(t)
	polls := 0
	var polling sync.WaitGroup
	polling.Go(func() {
		for ; ctx.Err() == nil; polls++ {
			lines, err := reader.Query(file, "SELECT count(*), min(value), max(value) FROM forms.form1")
			if err != nil {
				t.Errorf("poll: %v", err)
				return
			}
			v := strings.Split(lines[0], "|")
			mu.Lock()
			want := counts[v[1]]
			mu.Unlock()
			if v[1] != v[2] || v[0] != want {
				t.Errorf("a reader saw %s, and that round has %s rows", lines[0], want)
				return
			}
		}
	})
	kills := 0
	for round := 1; round <= rounds && !t.Failed(); round++ {
		begin(round)
		// A run takes longer beside a reader, so some kills come while it commits.
		for try := range 3 {
			if w.killedAfter(whole * time.Duration(50+(round*37+try*71)%150) / 100) {
				kills++
			}
		}
		w.run()
		w.whole()
	}
	stop()
	polling.Wait()
	t.Logf("%d runs were killed; the reader polled %d times and found the file locked %d times", kills, polls, reader.Refused())
	if kills < rounds/2 || polls < rounds {
		t.Errorf("only %d kills and %d polls", kills, polls)
	}
}

// killedAfter runs the real program and kills it after a time. It tells whether the run was
// killed before it ended.
func (w *world) killedAfter(pause time.Duration) bool {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.program, "run", w.definition(), "--full") //nolint:gosec // the program under test
	cmd.Env = append(os.Environ(), "FORMETL_API_KEY="+testKey, "HOME="+w.dir, "TZ=UTC")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	kill := time.AfterFunc(pause, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	err := cmd.Wait()
	if err == nil {
		return false
	}
	failed, ok := errors.AsType[*exec.ExitError](err)
	if status, is := failed.Sys().(syscall.WaitStatus); !ok || !is || status.Signal() != syscall.SIGKILL {
		w.t.Fatalf("the run: %v", err)
	}
	return true
}
