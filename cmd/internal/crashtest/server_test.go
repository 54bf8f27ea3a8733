package crashtest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/servers"
)

// ownServer gives a world an S3 server of its own, which may be killed.
func ownServer(t *testing.T, w *world) *servers.S3 {
	t.Helper()
	server, err := startServer(filepath.Join(w.dir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	w.gate.lead(t, server.URL)
	w.losing = newPrefix(t, server.URL, strings.TrimPrefix(w.address(), "s3://"+bucket+"/"))
	return server
}

// TestServerKilled kills the S3 server with -9 at requests over the whole of a run. It is
// there again at once, and the run may not even notice; or it stays away, and the run gives
// up in order. The next run makes the truth of it.
func TestServerKilled(t *testing.T) {
	needS3(t)
	for _, o := range []output{ndjsonDataset, csvFile} {
		calm := newWorld(t, kind{"s3", true}, o)
		calm.run()
		requests := calm.moment.total()
		const kills = 8
		for i := range kills {
			t.Run(fmt.Sprintf("%s %d", o.format, i), func(t *testing.T) {
				t.Parallel() // most of it is waiting
				w := newWorld(t, kind{"s3", true}, o)
				s := ownServer(t, w)
				var states []rows
				second, after, back := i%2 == 1, i/2%2 == 1, i/4%2 == 1
				if second {
					w.run()
					states = append(states, truth(w.form))
					change(w.form, i)
				}
				states = append(states, truth(w.form))
				n := 1 + i*requests/kills
				code := w.withoutServer(s, n, after, back)
				t.Logf("the server was killed at request %d, after it was done: %t, back at once: %t; the run ended with %d", n, after, back, code)
				w.oneOf(states...)
				w.run()
				w.whole(truth(w.form))
				w.clean()
				w.whole(truth(w.form))
			})
		}
	}
}

// withoutServer runs the pipeline and kills the server on the way.
func (w *world) withoutServer(s *servers.S3, n int, after, back bool) (code int) {
	w.t.Helper()
	if !back {
		w.attempts = "2" // else it asks for a quarter of a minute
		defer func() { w.attempts = "" }()
	}
	ctx := w.t.Context()
	restart := func() {
		if err := s.Restart(ctx); err != nil {
			w.t.Error(err)
		}
	}
	p := w.pipeline("")
	w.moment.arm(n, after, func() {
		s.Stop()
		if back {
			restart()
		}
	})
	o := w.do(p)
	if came := w.moment.disarm(); came && !back {
		restart()
	}
	switch {
	case o.killed, o.code != 0 && o.code != 74 && o.code != 75:
		w.t.Errorf("the run ended with %d:\n%s", o.code, o.stderr)
	case o.code == 75 && strings.Contains(o.stderr, load.ErrStagedGone.Error()):
		// versitygw renames an upload while it completes it, and does not find it again if it is
		// killed in just that moment. No object store loses it.
	case o.code != 0 && back:
		w.t.Errorf("the server was away for a moment and the run gave up with %d:\n%s", o.code, o.stderr)
	}
	return o.code
}
