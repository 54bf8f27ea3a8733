package faulttest

import (
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest/toxiproxy"
)

// TestNetworkToService spoils the line to the form service once 40 days are
// read: the run gives up with 75, and the next one resumes from there.
func TestNetworkToService(t *testing.T) {
	t.Parallel()
	needServer(t)
	const spoiledAt, days = 41, 60
	calm := manyForm()
	want := manyJob(calm.serve(t)).truth(t, calm.ids())
	for _, c := range []struct {
		name   string
		toxics []toxiproxy.Toxic
		off    bool
		says   string
	}{
		{"answers are cut", []toxiproxy.Toxic{toxiproxy.CutAfter("a", toxiproxy.Downstream, 100)}, false, ""},
		{"requests are cut", []toxiproxy.Toxic{toxiproxy.CutAfter("a", toxiproxy.Upstream, 20)}, false, ""},
		{"connections are reset", []toxiproxy.Toxic{toxiproxy.ResetPeer("a", toxiproxy.Downstream, 0)}, false, ""},
		{"answers are swallowed", []toxiproxy.Toxic{toxiproxy.BlackHole("a", toxiproxy.Downstream)}, false, "2s"},
		{"requests are swallowed", []toxiproxy.Toxic{toxiproxy.BlackHole("a", toxiproxy.Upstream)}, false, "2s"},
		{"nobody listens", nil, true, "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			form := manyForm()
			l := newLine(t, form.serve(t))
			form.before(func(page int64) {
				if page == spoiledAt {
					l.spoil(t, c.toxics...)
					if c.off {
						l.enable(t, false)
					}
				}
			})
			j := manyJob(l.url())
			j.requests += ", timeout: 2s, retries: 1"
			lake := folder{t.TempDir() + "/lake"}
			dir := t.TempDir()
			definition := j.definition(t, dir, lake)
			r := run(t, dir, nil, "run", definition)
			r.wantError(t, exitTemporary, c.says)
			if !strings.Contains(r.stderr, "run the same command again") {
				t.Errorf("nothing says that it may be run again:\n%s", r.stderr)
			}
			checkNothingVisible(t, lake)
			l.mend(t, c.toxics...)
			l.enable(t, true)
			form.hook.Store(nil)
			recovers(t, dir, definition, form, lake, want, days-spoiledAt+3)
		})
	}
}
