package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/testserver"
)

// TestCutAtEachMessage: a load whose connection is cut at any message, before the server got
// it or before its answer came, is carried out once.
func TestCutAtEachMessage(t *testing.T) {
	b := newBench(t, nil)
	p := newProxy(t)
	through := b.open(strings.Replace(server.DSN(b.database, "sslmode=disable"), portText(server.Port), portText(p.port), 1), nil)
	b.load(answers{1: "0", 2: "gone"}, "january")
	times := 0
	for n, missed := 1, false; !missed; n++ {
		for _, forward := range []bool{false, true} {
			times++
			of := answers{1: fmt.Sprint(times), int64(times + 2): "new"}
			l := b.loadOf(b.table, of, "january", false)
			// A lease that nobody renews, so that only the load is cut.
			b.query(fmt.Sprintf("DELETE FROM formetl.leases; INSERT INTO formetl.leases VALUES ('forms.feedback', 1, now(), json_build_object('run_id', '%s'))", l.Manifest.RunID))
			left := atomic.Int64{}
			left.Store(int64(n))
			decide := func([]byte) (bool, bool) { return left.Add(-1) != 0 || forward, left.Load() == 0 }
			p.cut.Store(&decide)
			change, err := through.Load(t.Context(), l)
			if err != nil {
				t.Fatalf("cut at message %d, sent on %t: %v", n, forward, err)
			}
			if want := (load.TableChange{Inserted: 1, Updated: 1, Deleted: 1}); change != want {
				t.Errorf("cut at message %d, sent on %t: changed %+v", n, forward, change)
			}
			b.holds(fmt.Sprintf("1 %d, %d new", times, times+2))
			missed = left.Load() > 0
		}
	}
	if runs := b.query("SELECT count(*) FROM formetl.runs"); runs != fmt.Sprint(times+1) || times < 20 {
		t.Errorf("%s runs for %d loads", runs, times+1)
	}
}

// TestPoolers: PgBouncer may lend a session for a transaction only.
func TestPoolers(t *testing.T) {
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
	p := newProxy(t)
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
	_, ok := errors.AsType[*load.TemporaryError](err)
	return ok
}

// TestAddress: an address holds no password, and neither does an error.
func TestAddress(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u:secret@db.example.com/warehouse":                          "postgres://db.example.com/warehouse",
		"host=db.example.com port=5433 user=u dbname=w password=secret":         "postgres://db.example.com:5433/w",
		"host=db user=u password=secret sslmode=verify-ca sslrootcert=/nowhere": "names a file that cannot be read: open /nowhere",
		"postgres://u:secret@db.example.com:port/warehouse":                     "no connection string",
		"postgres://u:secret@db.example.com/warehouse?sslmode=perhaps":          "no connection string",
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
	if err := testserver.Certify(other, other+".key"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options, role string // of the DSN; set for the role
		want          any
		says          string
	}{
		"require":             {"sslmode=require", "", nil, ""},
		"verify-full":         {"sslmode=verify-full&sslrootcert=" + server.CA, "", nil, ""},
		"another authority":   {"sslmode=verify-full&sslrootcert=" + other, "", new(*load.CreateError), "PGSSLROOTCERT"},
		"no authority":        {"sslmode=verify-full", "", new(*load.CreateError), "PGSSLROOTCERT"},
		"wrong password":      {"sslmode=disable&password=wrong-canary", "", new(*load.DeniedError), "PGPASSWORD"},
		"statement_timeout":   {"sslmode=disable", "statement_timeout = '300ms'", new(*load.TemporaryError), "57014"},
		"lock_timeout":        {"sslmode=disable", "lock_timeout = '50ms'", new(*load.TemporaryError), "55P03"},
		"idle_in_transaction": {"sslmode=disable", "idle_in_transaction_session_timeout = '100ms'", new(*load.TemporaryError), "try again later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.load(answers{1: "a"}, "january")
			dsn := server.DSN(b.database, c.options)
			if strings.HasPrefix(name, "idle") {
				p := newProxy(t)
				decide := func(sent []byte) (bool, bool) {
					for strings.Contains(string(sent), "ANALYZE") && b.query("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'") != "0" { //nolint:revive // until the server has enough
					}
					return true, false
				}
				p.cut.Store(&decide)
				dsn = server.DSNAt(p.port, b.database, c.options)
			}
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
			_, err := b.carry(b.open(dsn, nil), b.loadOf(b.table, answers{1: "b"}, "january", false))
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				b.holds("1 b")
				return
			}
			if err == nil || !errors.As(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("err = %T %v, want %T and %q", err, err, c.want, c.says)
			}
			for at := err; at != nil; at = errors.Unwrap(at) {
				if _, foreign := at.(hidden); foreign { //nolint:errorlint // what is behind it is never shown
					break
				}
				if strings.Contains(at.Error(), "canary") {
					t.Errorf("the error tells the password: %v", at)
				}
			}
			b.holds("1 a")
		})
	}
}
