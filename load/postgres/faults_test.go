package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/formetl/formetl/load/loadtest"

	"github.com/jackc/pgx/v5"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestCutAtEachMessage: a load whose connection is cut at any message, before the server got
// it or before its answer came, is carried out once.
func TestCutAtEachMessage(t *testing.T) {
	for name, set := range map[string]func(*Settings){"deleting": nil, "deleting softly, with audit": func(s *Settings) { s.SoftDelete, s.Audit = true, true }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, set)
			p := newProxy(t, b.server.Port)
			through := b.open(b.server.DSNAt(p.port, b.database, "sslmode=disable"), set)
			live := "true"
			if set != nil {
				live = "r.deleted_at IS NULL AND l.deleted_at IS NULL"
			}
			lists := map[int64][]string{1: {"0", "old"}, 2: {"gone"}}
			if _, err := b.carry(b.table, withLists(b.loadOf(b.table, answers{1: "0", 2: "gone"}, "january", false), lists)); err != nil {
				t.Fatal(err)
			}
			times := 0
			for n, missed := 1, false; !missed; n++ {
				for _, forward := range []bool{false, true} {
					times++
					id := int64(times + 2)
					// The list of result 1 gets longer and shorter.
					lists = map[int64][]string{1: slices.Repeat([]string{fmt.Sprint(times)}, 1+times%3), id: {"x"}}
					l := withLists(b.loadOf(b.table, answers{1: fmt.Sprint(times), id: "new"}, "january", false), lists)
					left := atomic.Int64{}
					left.Store(int64(n))
					decide := func([]byte) (bool, bool) { return left.Add(-1) != 0 || forward, left.Load() == 0 }
					p.cut.Store(&decide)
					change, err := b.carry(through, l)
					if err != nil {
						t.Fatalf("cut at message %d, sent on %t: %v", n, forward, err)
					}
					if want := (load.TableChange{Inserted: 1, Updated: 1, Deleted: 1}); change != want {
						t.Errorf("cut at message %d, sent on %t: changed %+v", n, forward, change)
					}
					want := fmt.Sprintf("1 %d %s, %d new x", times, strings.Join(lists[1], " "), id)
					got := b.query("SELECT string_agg(line, ', ' ORDER BY line) FROM (SELECT id || ' ' || answer || ' ' || string_agg(colour, ' ' ORDER BY position) AS line" +
						" FROM forms.feedback r FULL JOIN forms.feedback__colours l USING (id) WHERE " + live + " GROUP BY id, answer) AS lines")
					if got != want {
						t.Fatalf("cut at message %d, sent on %t: the table holds %q, want %q", n, forward, got, want)
					}
					rows, by := "2", "true"
					if set != nil { // updated, inserted and softly deleted by this run
						rows, by = "3", "run_id = '"+l.Manifest.RunID+"'"
					}
					if got := b.query("SELECT count(*) FROM forms.feedback WHERE " + by); got != rows {
						t.Errorf("cut at message %d, sent on %t: %s rows, want %s", n, forward, got, rows)
					}
					missed = left.Load() > 0
				}
			}
			if runs := b.query("SELECT count(*) FROM formetl.runs"); runs != fmt.Sprint(times+1) || times < 20 {
				t.Errorf("%s runs for %d loads", runs, times+1)
			}
		})
	}
}

// TestReaderPolls: a reader that looks again and again sees whole loads only: all results of
// one generation, each with its list. Some loads are killed.
func TestReaderPolls(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := newProxy(t, b.server.Port)
	through := b.open(b.server.DSNAt(p.port, b.database, "sslmode=disable"), nil)
	const results, most = 40, 20
	generation := func(g int, full bool) load.TableLoad {
		of, lists := answers{}, map[int64][]string{}
		for id := range int64(results) { // some vanish, some are new
			id += int64(g)
			of[id] = fmt.Sprint(g)
			lists[id] = slices.Repeat([]string{fmt.Sprint(g)}, 1+g%3)
		}
		return withLists(b.loadOf(b.table, of, "january", full), lists)
	}
	if _, err := b.carry(b.table, generation(1, false)); err != nil {
		t.Fatal(err)
	}
	reader, err := pgx.Connect(t.Context(), b.server.DSN(b.database, "sslmode=disable"))
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	seen, looks, ended := map[int]bool{}, 0, make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = reader.Close(context.Background()) }()
		for ; !stop.Load(); looks++ {
			var g, generations, n, strange, elements int
			err := reader.QueryRow(t.Context(), `SELECT coalesce(max(answer)::int, 0), count(DISTINCT answer), count(DISTINCT r.id), count(*) FILTER (WHERE answer IS DISTINCT FROM colour), count(*)
				FROM forms.feedback r FULL JOIN forms.feedback__colours l ON r.id = l.id`).Scan(&g, &generations, &n, &strange, &elements)
			if err != nil || generations != 1 || n != results || strange != 0 || elements != results*(1+g%3) {
				t.Errorf("generation %d: %d generations, %d results, %d rows alone or of other generations, %d elements, err %v", g, generations, n, strange, elements, err)
				return
			}
			seen[g] = true
		}
	}()
	for g := 2; g <= most; g++ {
		l := generation(g, g%5 == 0)
		if g%2 == 0 { // killed at a message of its own
			ctx, kill := context.WithCancel(t.Context())
			left := atomic.Int64{}
			left.Store(int64(4 + g))
			decide := func([]byte) (bool, bool) {
				if left.Add(-1) == 0 {
					kill()
				}
				return true, left.Load() == 0
			}
			p.cut.Store(&decide)
			lease, err := b.table.Acquire(t.Context(), "", load.Holder{RunID: l.Manifest.RunID})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := through.Load(ctx, l); err == nil {
				t.Errorf("load %d was not killed", g)
			}
			kill()
			_ = lease.Release(t.Context())
			continue
		}
		if _, err := b.carry(b.table, l); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	<-ended
	if len(seen) < most/4 || looks < most {
		t.Errorf("%d looks saw %d generations", looks, len(seen))
	}
}

// TestPoolers: PgBouncer may lend a session for a transaction only.
func TestPoolers(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t, nil)
			port := server.Bouncer(t, "pool_mode = "+mode, "default_pool_size = 3")
			b.table = b.open(strings.Replace(server.DSN(b.database, "sslmode=disable"), portText(server.Port), portText(port), 1), nil)
			of := answers{}
			for i := range int64(50) {
				of[i+1] = "new"
				of[i/2+1] = fmt.Sprint("edited ", i)
				delete(of, i/3)
				b.load(of, "january")
				b.load(answers{1000 + i: "b"}, "february")
			}
			want := int64(len(of) + 1)
			if got := b.query("SELECT count(*) FROM forms.feedback"); got != fmt.Sprint(want) {
				t.Errorf("%s rows, want %d", got, want)
			}
			for id, answer := range of {
				if got := b.query(fmt.Sprint("SELECT answer FROM forms.feedback WHERE id = ", id)); got != answer {
					t.Errorf("result %d is %q, want %q", id, got, answer)
				}
			}
		})
	}
}

// TestServerStopped: a server that is stopped in the middle ends a load with an error that may
// pass, and holds what it held.
func TestServerStopped(t *testing.T) {
	b := newBench(t, nil)
	b.load(answers{1: "a"}, "january")
	p := newProxy(t, b.server.Port)
	through := b.open(strings.Replace(server.DSN(b.database, "sslmode=disable"), portText(server.Port), portText(p.port), 1), nil)
	l := b.loadOf(b.table, answers{1: "b"}, "january", false)
	lease, err := b.table.Acquire(t.Context(), "", load.Holder{RunID: l.Manifest.RunID})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release(t.Context()) }()
	p.refuse(true)
	if _, err = through.Load(t.Context(), l); !isAway(err) {
		t.Errorf("err = %v", err)
	}
	b.holds("1 a")
}

func isAway(err error) bool {
	ok := errors.Is(err, load.ErrAway)
	return ok
}

// TestAddress: an address holds no password, and neither does an error.
func TestAddress(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u:secret@db.example.com/warehouse":                          "postgres://db.example.com/warehouse",
		"host=db.example.com port=5433 user=u dbname=w password=secret":         "postgres://db.example.com:5433/w",
		"host=db user=u password=secret sslmode=verify-ca sslrootcert=/nowhere": "variable cannot be read: open /nowhere",
		"postgres://u:secret@db.example.com:port/warehouse":                     "not a connection string",
		"postgres://u:secret@db.example.com/warehouse?sslmode=perhaps":          "not a connection string",
	} {
		got, err := Address(dsn)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s gives %s", want, got)
		}
	}
}

// TestConnections: what keeps a load from the server, or ends it there, has its class and a
// remedy, and shows no password.
func TestConnections(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.crt")
	if err := needs.Certify(other, other+".key"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options, role string // of the DSN; set for the role
		want          error
		says          string
	}{
		"require":             {"sslmode=require", "", nil, ""},
		"verify-full":         {"sslmode=verify-full&sslrootcert=" + server.CA, "", nil, ""},
		"another authority":   {"sslmode=verify-full&sslrootcert=" + other, "", load.ErrUnusable, "PGSSLROOTCERT"},
		"no authority":        {"sslmode=verify-full", "", load.ErrUnusable, "PGSSLROOTCERT"},
		"wrong password":      {"sslmode=disable&password=wrong-canary", "", load.ErrDenied, "PGPASSWORD"},
		"statement_timeout":   {"sslmode=disable", "statement_timeout = '1s'", load.ErrAway, "57014"},
		"lock_timeout":        {"sslmode=disable", "lock_timeout = '50ms'", load.ErrAway, "55P03"},
		"idle_in_transaction": {"sslmode=disable", "idle_in_transaction_session_timeout = '1s'", load.ErrAway, "run the same command again later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.load(answers{1: "a"}, "january")
			dsn := server.DSN(b.database, c.options)
			if strings.HasPrefix(name, "idle") {
				p := newProxy(t, b.server.Port)
				decide := func(sent []byte) (bool, bool) {
					for strings.Contains(string(sent), "ANALYZE") && b.query("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'") != "0" { //nolint:revive // until the server has enough
					}
					return true, false
				}
				p.cut.Store(&decide)
				dsn = server.DSNAt(p.port, b.database, c.options)
			}
			l := b.loadOf(b.table, answers{1: "b"}, "january", false)
			if c.role != "" {
				b.query("ALTER ROLE loader IN DATABASE " + b.database + " SET " + c.role)
			}
			if strings.HasSuffix(name, "_timeout") {
				reader, err := pgx.Connect(t.Context(), server.DSN(b.database, "sslmode=disable&statement_timeout=0"))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = reader.Close(context.Background()) }()
				if _, err := reader.Exec(t.Context(), "BEGIN; SELECT * FROM forms.feedback FOR UPDATE"); err != nil {
					t.Fatal(err)
				}
			}
			_, err := b.carry(b.open(dsn, nil), l)
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				b.holds("1 b")
				return
			}
			if err == nil || !errors.Is(err, c.want) || !strings.Contains(loadtest.Told(err), c.says) {
				t.Errorf("err = %T %v, want %v and %q", err, err, c.want, c.says)
			}
			for at := err; at != nil; at = errors.Unwrap(at) {
				if strings.Contains(at.Error(), "canary") {
					t.Errorf("the error tells the password: %v", at)
				}
				if _, refused := at.(*load.Refusal); refused { //nolint:errorlint // what it wraps is never shown
					break
				}
			}
			b.holds("1 a")
		})
	}
}
