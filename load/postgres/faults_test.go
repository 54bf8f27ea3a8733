package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/pgserver"
)

func portText(port int) string { return strconv.Itoa(port) }

// change stages a run that replaces the whole table by n rows, which hold the run's id.
func change(t *testing.T, d *Destination, run string, n int) load.Commit {
	t.Helper()
	rows := results{}
	for id := range n {
		rows[int64(id+1)] = run
	}
	b := &table{T: t, Destination: d, columns: columnsOf()}
	return b.replaces(run, map[int]results{1: rows})
}

// holds checks that the table holds the rows of a run, and nothing is staged.
func holds(t *testing.T, database, run string, n int) {
	t.Helper()
	if got := query(t, database, "SELECT text, count(*) FROM forms.feedback GROUP BY text"); got != fmt.Sprintf("%s|%d", run, n) {
		t.Fatalf("the table holds %q, want %d rows of %s", got, n, run)
	}
	d := open(t, database, "forms.feedback")
	if m, _, err := load.ReadManifest(t.Context(), d, load.ManifestName); err != nil || m.RunID != run {
		t.Fatalf("the manifest is of %+v, %v", m, err)
	}
	if left, err := d.Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Fatalf("left over is %+v, %v", left, err)
	}
	if tables := query(t, database, `SELECT count(*) FROM pg_class WHERE relname LIKE '\_formetl\_staged\_%' AND relkind = 'r'`); tables != "0" {
		t.Fatalf("%s staging tables are left", tables)
	}
}

// settled waits until the server has ended the sessions of the name cut. It may still carry
// out what came before a connection was cut.
func settled(t *testing.T, database string) {
	t.Helper()
	for range 1000 {
		if query(t, database, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'cut'") == "0" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("a session has not ended within ten seconds")
}

// The server stays away after the cut. The next run finishes the commit, or finds it done.
func TestCutAndAway(t *testing.T) {
	for _, forward := range []bool{false, true} {
		t.Run(fmt.Sprint("forward=", forward), func(t *testing.T) {
			database := server.Database(t)
			p := newProxy(t)
			d := openBy(t, server.DSNAt(p.port, database, "sslmode=disable"), "forms.feedback")
			c := change(t, d, "run1", 5)
			recorded, err := c.Record(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			hit := p.cutAt("COMMIT\x00", 1, forward)
			p.refuse(true)
			err = recorded.Publish(t.Context())
			var away *load.TemporaryError
			if !errors.As(err, &away) || !hit.Load() {
				t.Fatalf("a server that is away gives %v", err)
			}
			var stopped *load.CommitError
			if !errors.As(err, &stopped) || !stopped.Recorded {
				t.Fatalf("the commit is not told as recorded: %v", err)
			}
			p.refuse(false)
			if _, err := load.Recover(t.Context(), openBy(t, server.DSNAt(p.port, database, "sslmode=disable"), "forms.feedback"), "", nil); err != nil {
				t.Fatal(err)
			}
			holds(t, database, "run1", 5)
		})
	}
}

// Each message of a commit is cut once, in short every fifth. The run ends with a temporary error or goes on, and
// the run after it gives the truth.
func TestCutAtEveryStatement(t *testing.T) {
	database := server.Database(t)
	step := 5 / needs.Count(5, 1)
	for _, forward := range []bool{false, true} {
		n := 1
		for hit := true; hit; n += step {
			if err := change(t, open(t, database, "forms.feedback"), fmt.Sprint("before", n), 3).Do(t.Context(), open(t, database, "forms.feedback")); err != nil {
				t.Fatal(err)
			}
			p := newProxy(t)
			c := change(t, open(t, database, "forms.feedback"), fmt.Sprint("run", n), 7)
			was := p.cutAt("\x00", n, forward)
			err := c.Do(t.Context(), openBy(t, server.DSNAt(p.port, database, "sslmode=disable&application_name=cut"), "forms.feedback"))
			if hit = was.Load(); !hit && err != nil {
				t.Fatalf("without a cut (forward %v): %v", forward, err)
			}
			var away *load.TemporaryError
			if err != nil && !errors.As(err, &away) {
				t.Fatalf("cut %d (forward %v): %v", n, forward, err)
			}
			p.sever()
			settled(t, database)
			r, recoverErr := load.Recover(t.Context(), open(t, database, "forms.feedback"), "", nil)
			if recoverErr != nil {
				t.Fatal(recoverErr)
			}
			if err == nil || r.Finished {
				holds(t, database, c.RunID, 7)
				continue
			}
			if err := load.AbortAll(t.Context(), open(t, database, "forms.feedback"), c.New...); err != nil {
				t.Fatal(err)
			}
			if m, _, err := load.ReadManifest(t.Context(), open(t, database, "forms.feedback"), load.ManifestName); err != nil {
				t.Fatal(err)
			} else if m.RunID == c.RunID {
				holds(t, database, c.RunID, 7)
			} else {
				holds(t, database, fmt.Sprint("before", n), 3)
			}
		}
		if n < 20 {
			t.Errorf("forward %v: a commit has only %d messages", forward, n-1)
		}
	}
}

// The connection is cut while rows are sent. The upload fails, and nothing stays.
func TestCutWhileStaging(t *testing.T) {
	database := server.Database(t)
	p := newProxy(t)
	d := openBy(t, server.DSNAt(p.port, database, "sslmode=disable"), "forms.feedback")
	u, err := d.Stage(t.Context(), "run1", "part-min-max-000001-0000.rows")
	if err != nil {
		t.Fatal(err)
	}
	rows := results{}
	for id := range int64(10_000) {
		rows[id] = strings.Repeat("x", 500)
	}
	data := encoded(t, (&table{columns: columnsOf()}).batch(rows))
	if _, err := u.Write(data[:len(data)/2]); err != nil {
		t.Fatal(err)
	}
	p.sever()
	_, err = u.Write(data[len(data)/2:])
	if err == nil {
		_, err = u.Prepare(t.Context())
	}
	var away *load.TemporaryError
	if !errors.As(err, &away) {
		t.Fatalf("a cut gives %v", err)
	}
	if err := u.Abort(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, database, "feedback"); len(left) > 0 {
		t.Fatalf("left is %q", left)
	}
}

// The server crashes between staging and commit. What is not logged is empty then, and the
// commit is taken back.
func TestServerCrash(t *testing.T) {
	database := server.Database(t)
	d := open(t, database, "forms.feedback")
	if err := change(t, d, "run1", 3).Do(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	c := change(t, d, "run2", 5)
	if _, err := c.Record(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	d = open(t, database, "forms.feedback")
	if err := d.Check(t.Context(), c.New[0]); !errors.Is(err, load.ErrStagedGone) {
		t.Fatalf("the check gives %v", err)
	}
	if err := d.Commit(t.Context(), c.New[0]); !errors.Is(err, load.ErrStagedGone) {
		t.Fatalf("the commit gives %v", err)
	}
	r, err := load.Recover(t.Context(), d, "", nil)
	if err != nil || r.Finished || r.RunID != "run2" {
		t.Fatalf("recovery is %+v, %v", r, err)
	}
	holds(t, database, "run1", 3)
}

func TestRefusals(t *testing.T) {
	database := server.Database(t)
	good := server.DSN(database, "sslmode=disable")
	for name, test := range map[string]struct {
		dsn, table string
		want       any
	}{
		"no server":      {strings.Replace(good, portText(server.Port), "1", 1), "forms.t", new(*load.TemporaryError)},
		"wrong password": {strings.Replace(good, "canary", "wrong", 1), "forms.t", new(*load.DeniedError)},
		"no database":    {strings.Replace(good, database, "nothing", 1), "forms.t", new(*load.CreateError)},
		"no schema":      {good, "nothing.t", new(*load.CreateError)},
		"no rights":      {good, "pg_catalog.t", new(*load.IOError)},
		"no such host":   {strings.Replace(good, "127.0.0.1", "nothing.invalid", 1), "forms.t", nil},
		"not trusted":    {server.DSN(database, "sslmode=verify-full"), "forms.t", new(*load.CreateError)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBy(t, test.dsn, test.table).Acquire(t.Context(), "", load.Holder{RunID: "run1"})
			if err == nil || test.want != nil && !errors.As(err, test.want) {
				t.Fatalf("got %T %v, want %T", err, err, test.want)
			}
			for at := err; at != nil; at = errors.Unwrap(at) {
				if strings.Contains(at.Error(), pgserver.Password) || strings.Contains(at.Error(), "canary") {
					t.Errorf("the error tells the password: %v", at)
				}
			}
			if !strings.Contains(err.Error(), ";") {
				t.Errorf("the error says nothing of what to do: %v", err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	database := server.Database(t)
	for _, options := range []string{"sslmode=disable", "sslmode=prefer", "sslmode=require", "sslmode=verify-ca&sslrootcert=" + server.CA, "sslmode=verify-full&sslrootcert=" + server.CA} {
		d := openBy(t, server.DSN(database, options), "forms.t")
		if err := d.Put(t.Context(), "x", []byte(options), load.AnyVersion); err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		err := d.with(t.Context(), "ask", "", func(s *session) error {
			found, err := s.Query(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
			if want := map[bool]string{true: "f", false: "t"}[options == "sslmode=disable"]; err == nil && string(found[0][0]) != want {
				t.Errorf("%s: encrypted is %s", options, found[0][0])
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A lease survives that its connection is cut, unless another run takes it meanwhile.
func TestLeaseOfACutConnection(t *testing.T) {
	database := server.Database(t)
	p := newProxy(t)
	d := openBy(t, server.DSNAt(p.port, database, "sslmode=disable"), "forms.feedback")
	held, err := d.Acquire(t.Context(), "", load.Holder{RunID: "run1"})
	if err != nil {
		t.Fatal(err)
	}
	l := held.(*connLease)
	l.stop() // the test asks by itself
	<-l.ended
	p.sever()
	if !l.regained(t.Context()) {
		t.Fatal("the lease was not taken again")
	}
	other := open(t, database, "forms.feedback")
	if _, err := other.Acquire(t.Context(), "", load.Holder{RunID: "run2"}); !heldBy(err, "run1") {
		t.Fatalf("the lease that was regained gives %v", err)
	}
	p.sever()
	taken, err := acquireSoon(t.Context(), other, load.Holder{RunID: "run2"})
	if err != nil {
		t.Fatal(err)
	}
	if l.regained(t.Context()) {
		t.Fatal("a lease that another run took was regained")
	}
	if err := taken.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.regained(t.Context()) {
		t.Fatal("a lease that another run had meanwhile was regained")
	}
}

func heldBy(err error, run string) bool {
	held, ok := errors.AsType[*load.HeldError](err)
	return ok && held.RunID == run
}

// acquireSoon takes a lease as soon as the server notices that its holder is gone.
func acquireSoon(ctx context.Context, d *Destination, h load.Holder) (load.Lease, error) {
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		taken, err := d.Acquire(ctx, "", h)
		if err == nil || time.Now().After(until) {
			return taken, err
		}
	}
}

func TestAddress(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u:p@db.example.com/warehouse":          "postgres://db.example.com/warehouse",
		"postgresql://u:p@db.example.com:6432/warehouse":   "postgres://db.example.com:6432/warehouse",
		"host=db port=5432 user=u password=p dbname=w":     "postgres://db/w",
		"host=/var/run/postgresql user=u dbname='{x} y/z'": "postgres://%2Fvar%2Frun%2Fpostgresql/%7Bx%7D+y%2Fz",
		"postgres://u:p@db.example.com?sslmode=disable":    "postgres://db.example.com/u",
		"postgres://u:p@[::1]:5433/w":                      "postgres://::1:5433/w",
	} {
		if got, err := Address(dsn); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", dsn, got, err, want)
		}
	}
	for _, dsn := range []string{"postgres://u:secret@host:port/x", "nonsense secret", "host=x sslmode=secret"} {
		if _, err := Address(dsn); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
