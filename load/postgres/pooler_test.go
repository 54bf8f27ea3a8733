package postgres

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/load"
)

// TestPooler: a pooler that keeps sessions together is as good as the server. Any other is
// found when a destination connects, whatever else the pooler does.
func TestPooler(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings []string
		others   int    // connections of other clients, which take and give back sessions
		found    string // "": sessions are kept together
	}{
		{"session", []string{"pool_mode = session"}, 0, ""},
		{"session, with others", []string{"pool_mode = session"}, 3, ""},
		{"transaction", []string{"pool_mode = transaction"}, 0, "two connections at once have the server's session"},
		{"transaction, one by one", []string{"pool_mode = transaction", "server_round_robin = 1"}, 0, "session"},
		{"transaction, one session", []string{"pool_mode = transaction", "default_pool_size = 1"}, 0, "two connections at once"},
		{"transaction, with others", []string{"pool_mode = transaction"}, 5, "session"},
		{"transaction, one by one, with others", []string{"pool_mode = transaction", "server_round_robin = 1"}, 5, "session"},
		{"statement", []string{"pool_mode = statement"}, 0, "no transactions of several statements"},
	} {
		t.Run(c.name, func(t *testing.T) {
			database := server.Database(t)
			dsn := server.DSNAt(server.Bouncer(t, append(c.settings, "max_client_conn = 50")...), database, "sslmode=disable")
			d := openBy(t, dsn, "forms.feedback")
			busy(t, dsn, c.others)
			lease, err := d.Acquire(t.Context(), "", load.Holder{RunID: "one"})
			if c.found == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := change(t, d, "one", 30).Do(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				holds(t, database, "one", 30)
				return
			}
			unfit, ok := errors.AsType[*load.TableError](err)
			if !ok || !strings.Contains(unfit.Problem, c.found) || !strings.Contains(err.Error(), "pool_mode = session") {
				t.Errorf("the error is %v", err)
			}
			if _, err := d.List(t.Context(), ""); err == nil {
				t.Error("another connection is not refused")
			}
		})
	}
}

// busy lets other clients begin and end transactions until the test ends.
func busy(t *testing.T, dsn string, others int) {
	t.Helper()
	conns, ended := &connections{dsn: dsn}, make(chan struct{})
	var group sync.WaitGroup
	for range others {
		conn, err := conns.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			defer func() { _ = conn.Close(t.Context()) }() // it did nothing
			for {
				select {
				case <-ended:
					return
				default:
					_, _ = ask(t.Context(), conn, "BEGIN; SELECT pg_sleep(0.001); COMMIT; SELECT 1") // the test is about others
				}
			}
		})
	}
	t.Cleanup(func() {
		close(ended)
		group.Wait()
	})
}
