package faulttest

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/toxiproxy"
)

// line is a connection through toxiproxy that can be spoiled.
type line struct {
	name    string
	address string
}

// newLine forwards to a server of the tests, whose URL is given.
func newLine(t testing.TB, to string) line {
	t.Helper()
	name := rand.Text()
	address, err := network.Forward(t.Context(), name, strings.TrimPrefix(to, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return line{name, address}
}

func (l line) url() string { return "http://" + l.address }

func (l line) spoil(t testing.TB, toxics ...toxiproxy.Toxic) {
	t.Helper()
	for _, toxic := range toxics {
		if err := network.AddToxic(t.Context(), l.name, toxic); err != nil {
			t.Error(err)
		}
	}
}

func (l line) mend(t testing.TB, toxics ...toxiproxy.Toxic) {
	t.Helper()
	for _, toxic := range toxics {
		if err := network.RemoveToxic(t.Context(), l.name, toxic.Name); err != nil {
			t.Error(err)
		}
	}
}

func (l line) enable(t testing.TB, on bool) {
	t.Helper()
	if err := network.Enable(t.Context(), l.name, on); err != nil {
		t.Error(err)
	}
}

// wideForm is 8 days of 48 results of 30 kB: 10 MB in January, which S3 takes
// in two parts of 5 MiB, and 1.4 MB in February.
func wideForm() *bulk {
	return &bulk{results: 384, values: 3, length: 10_000, from: january(25), step: 30 * time.Minute}
}

func wideJob(service string) job {
	return job{service: service, extract: "from: 2025-01-25, to: 2025-02-02, window: 1d", part: "month", settings: ", part_size: 5MiB, parts_in_flight: 2"}
}

// networkFault is what happens to the line to S3.
type networkFault struct {
	name   string
	toxics []toxiproxy.Toxic
	// page is the answer of the service at which it begins, 0: at the start.
	page int64
	off  bool          // nobody listens any more
	lift time.Duration // so long after it began it ends; 0: when the run has ended
	code []int         // that the run may end with
	env  []string
	long bool // only where FORMETL_TEST_LARGE is set: it takes minutes
}

func networkFaults() []networkFault {
	const up, down = toxiproxy.Upstream, toxiproxy.Downstream
	slicer := func(name string, s toxiproxy.Stream) toxiproxy.Toxic {
		return toxiproxy.Toxic{Name: name, Type: "slicer", Stream: s, Toxicity: 1, Attributes: map[string]int{"average_size": 8000, "size_variation": 4000, "delay": 200}}
	}
	fine, maybe := []int{exitOK}, []int{exitOK, exitIO, exitTemporary}
	failed := []int{exitIO, exitTemporary}
	// A connection that toxiproxy closes while it puts a toxic on is one attempt.
	few := []string{"AWS_MAX_ATTEMPTS=2"}
	list := func(toxics ...toxiproxy.Toxic) []toxiproxy.Toxic { return toxics }
	return []networkFault{
		{name: "latency", toxics: list(toxiproxy.Latency("a", up, 40, 20), toxiproxy.Latency("b", down, 40, 20)), code: fine},
		{name: "narrow", toxics: list(toxiproxy.Bandwidth("a", up, 4000), toxiproxy.Bandwidth("b", down, 4000)), code: fine},
		{name: "sliced", toxics: list(slicer("a", up), slicer("b", down)), code: fine},
		{name: "reset while sending", toxics: list(toxiproxy.ResetPeer("a", up, 60)), code: maybe, env: few},
		{name: "reset while answering", toxics: list(toxiproxy.ResetPeer("a", down, 60)), code: maybe, env: few},
		{name: "reset at once", toxics: list(toxiproxy.ResetPeer("a", down, 0)), page: 3, code: failed, env: few},
		{name: "cut in a part", toxics: list(toxiproxy.CutAfter("a", up, 3<<20)), code: failed, env: few},
		{name: "cut in small requests", toxics: list(toxiproxy.CutAfter("a", up, 700)), page: 2, code: failed, env: few},
		{name: "cut now and then", toxics: list(share(toxiproxy.CutAfter("a", up, 1<<20), 0.5)), code: maybe},
		{name: "answers cut in their heads", toxics: list(toxiproxy.CutAfter("a", down, 60)), page: 2, code: failed, env: few},
		{name: "answers cut after some", toxics: list(toxiproxy.CutAfter("a", down, 900)), code: maybe},
		{name: "off", off: true, page: 3, code: []int{exitTemporary}, env: few},
		{name: "off for a moment", off: true, page: 3, lift: 300 * time.Millisecond, code: fine, env: []string{"AWS_MAX_ATTEMPTS=12"}},
		// Toxiproxy closes what a black hole held when it takes it off.
		{name: "black hole for a moment", toxics: list(toxiproxy.BlackHole("a", up)), page: 3, lift: time.Second, code: fine},
		{name: "black hole upwards", toxics: list(toxiproxy.BlackHole("a", up)), page: 2, code: failed, env: few, long: true},
		// versitygw closes a connection that it has answered on, so this is none.
		{name: "answers swallowed", toxics: list(toxiproxy.BlackHole("a", down)), page: 2, code: failed, env: few},
		{name: "black hole", toxics: list(toxiproxy.BlackHole("a", up), toxiproxy.BlackHole("b", down)), code: failed, env: few, long: true},
	}
}

// share lets a toxic take only a share of the connections.
func share(t toxiproxy.Toxic, of float64) toxiproxy.Toxic {
	t.Toxicity = of
	return t
}

// TestNetworkToS3 spoils the line to S3. Whatever happens, the run ends and
// says so in one error, readers see nothing half-written, and once the line is
// mended the next run writes the truth and leaves nothing behind.
func TestNetworkToS3(t *testing.T) {
	t.Parallel()
	needServer(t)
	calm := wideForm()
	want := wideJob(calm.serve(t)).truth(t, calm.ids())
	for _, f := range needs.Sample(networkFaults(), 7) {
		if f.long && !large() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			form := wideForm()
			b := newBucket(t)
			l := newLine(t, server.URL)
			j := wideJob(form.serve(t))
			j.endpoint = l.url()
			dir := t.TempDir()
			definition := j.definition(t, dir, b)
			begin, lifted := f.over(t, l)
			form.before(func(page int64) {
				if page == f.page {
					begin()
				}
			})
			if f.page == 0 {
				begin()
			}
			r := run(t, dir, f.env, "run", definition)
			if !slices.Contains(f.code, r.code) {
				t.Errorf("ended with %d, want one of %v:\n%s", r.code, f.code, r.stderr)
			}
			if r.code != exitOK {
				r.wantError(t, r.code)
			}
			lifted()
			if r.code != exitOK {
				checkUnlessRecorded(t, b)
			}
			run(t, dir, nil, "run", definition).wantOK(t)
			check(t, b, want)
			checkSwept(t, dir, nil, definition, b)
		})
	}
}

// over gives what begins the fault and what ends it. Either may be called at
// any time.
func (f networkFault) over(t *testing.T, l line) (begin, end func()) {
	ended := make(chan struct{})
	end = sync.OnceFunc(func() {
		defer close(ended)
		l.mend(t, f.toxics...)
		l.enable(t, true)
	})
	begin = func() {
		l.spoil(t, f.toxics...)
		if f.off {
			l.enable(t, false)
		}
		if f.lift > 0 {
			timer := time.AfterFunc(f.lift, end)
			t.Cleanup(func() {
				if !timer.Stop() {
					<-ended
				}
			})
		}
	}
	return begin, end
}

// checkUnlessRecorded holds that nothing is visible of a run that ended before
// its commit was recorded.
func checkUnlessRecorded(t testing.TB, p place) {
	t.Helper()
	for name := range p.objects(t) {
		if strings.HasPrefix(name, load.ControlFolder+"/"+load.IntentName) || name == load.ManifestName {
			return
		}
	}
	checkNothingVisible(t, p)
}
