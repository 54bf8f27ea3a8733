package crashtest

import (
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/servers"
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
	address, err := shared.network.Forward(t.Context(), name, strings.TrimPrefix(to, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return line{name, address}
}

func (l line) url() string { return "http://" + l.address }

func (l line) spoil(t testing.TB, toxics ...servers.Toxic) {
	t.Helper()
	for _, toxic := range toxics {
		if err := shared.network.AddToxic(t.Context(), l.name, toxic); err != nil {
			t.Error(err)
		}
	}
}

func (l line) mend(t testing.TB, toxics ...servers.Toxic) {
	t.Helper()
	for _, toxic := range toxics {
		if err := shared.network.RemoveToxic(t.Context(), l.name, toxic.Name); err != nil {
			t.Error(err)
		}
	}
}

func (l line) enable(t testing.TB, on bool) {
	t.Helper()
	if err := shared.network.Enable(t.Context(), l.name, on); err != nil {
		t.Error(err)
	}
}

// newWideWorld writes 10 MB in January, which S3 takes in two parts of 5 MiB, and 1.4 MB in
// February, over a line that can be spoiled.
func newWideWorld(t *testing.T, outputs int) ([]*world, line, *trouble) {
	t.Helper()
	january := time.Date(2025, time.January, 25, 0, 0, 0, 0, time.UTC)
	dataset := output{"", "ndjson", ".ndjson", declared, "month"}
	worlds := newWorldsOf(t, kind{"s3", true}, newBigForm(384, 30_000, january, 30*time.Minute), "from: 2025-01-25, to: 2025-02-02, window: 1d",
		slices.Repeat([]output{dataset}, outputs)...)
	l, d := newLine(t, shared.buckets.URL), &trouble{}
	for _, w := range worlds {
		w.endpoint, w.settings = l.url(), ", part_size: 5MiB, parts_in_flight: 1"
	}
	define(declared, worlds...)
	worlds[0].service.Decide = d.decide
	return worlds, l, d
}

// networkFault is what happens to the line to S3.
type networkFault struct {
	name   string
	toxics []servers.Toxic
	// page is the answer of the service at which it begins, 0: at the start.
	page int
	off  bool          // nobody listens any more
	lift time.Duration // so long after it began it ends; 0: when the run has ended
	code []int         // that the run may end with
	env  []string
	long bool // only where FORMETL_TEST_LARGE is set: it takes minutes
}

func networkFaults() []networkFault {
	const up, down = servers.Upstream, servers.Downstream
	slicer := func(name string, s servers.Stream) servers.Toxic {
		return servers.Toxic{Name: name, Type: "slicer", Stream: s, Toxicity: 1, Attributes: map[string]int{"average_size": 8000, "size_variation": 4000, "delay": 200}}
	}
	fine, maybe := []int{0}, []int{0, 74, 75}
	failed := []int{74, 75}
	// A connection that toxiproxy closes while it puts a toxic on is one attempt.
	few := []string{"AWS_MAX_ATTEMPTS=2"}
	list := func(toxics ...servers.Toxic) []servers.Toxic { return toxics }
	return []networkFault{
		{name: "latency", toxics: list(servers.Latency("a", up, 40, 20), servers.Latency("b", down, 40, 20)), code: fine},
		{name: "narrow", toxics: list(servers.Bandwidth("a", up, 4000), servers.Bandwidth("b", down, 4000)), code: fine},
		{name: "sliced", toxics: list(slicer("a", up), slicer("b", down)), code: fine},
		{name: "reset while sending", toxics: list(servers.ResetPeer("a", up, 60)), code: maybe, env: few},
		{name: "reset while answering", toxics: list(servers.ResetPeer("a", down, 60)), code: maybe, env: few},
		{name: "reset at once", toxics: list(servers.ResetPeer("a", down, 0)), page: 3, code: failed, env: few},
		{name: "cut in a part", toxics: list(servers.CutAfter("a", up, 3<<20)), code: failed, env: few},
		{name: "cut in small requests", toxics: list(servers.CutAfter("a", up, 700)), page: 2, code: failed, env: few},
		{name: "cut now and then", toxics: list(share(servers.CutAfter("a", up, 1<<20), 0.5)), code: maybe},
		{name: "answers cut in their heads", toxics: list(servers.CutAfter("a", down, 60)), page: 2, code: failed, env: few},
		{name: "answers cut after some", toxics: list(servers.CutAfter("a", down, 900)), code: maybe},
		{name: "off", off: true, page: 3, code: []int{75}, env: few},
		{name: "off for a moment", off: true, page: 3, lift: 300 * time.Millisecond, code: fine, env: []string{"AWS_MAX_ATTEMPTS=12"}},
		// Toxiproxy closes what a black hole held when it takes it off.
		{name: "black hole for a moment", toxics: list(servers.BlackHole("a", up)), page: 3, lift: time.Second, code: fine},
		{name: "black hole upwards", toxics: list(servers.BlackHole("a", up)), page: 2, code: failed, env: few, long: true},
		// versitygw closes a connection that it has answered on, so this is none.
		{name: "answers swallowed", toxics: list(servers.BlackHole("a", down)), page: 2, code: failed, env: few},
		{name: "black hole", toxics: list(servers.BlackHole("a", up), servers.BlackHole("b", down)), code: failed, env: few, long: true},
	}
}

// share lets a toxic take only a share of the connections.
func share(t servers.Toxic, of float64) servers.Toxic {
	t.Toxicity = of
	return t
}

// TestNetworkToS3 spoils the line to S3. Whatever happens, the run ends and
// says so in one error, readers see nothing half-written, and once the line is
// mended the next run writes the truth and leaves nothing behind.
func TestNetworkToS3(t *testing.T) {
	needNetwork(t)
	for _, f := range needs.Sample(networkFaults(), 7) {
		if f.long && !large() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			worlds, l, d := newWideWorld(t, 1)
			w := worlds[0]
			begin, lifted := f.over(t, l)
			if f.page == 0 {
				begin()
			} else {
				d.come(f.page-1, begin, formservice.NoFault)
			}
			w.env = f.env
			o := w.do(w.pipeline(""))
			if !slices.Contains(f.code, o.code) {
				t.Errorf("ended with %d, want one of %v:\n%s", o.code, f.code, o.stderr)
			}
			lifted()
			if o.code != 0 {
				o.failed(t, o.code)
				w.unseen()
			}
			w.env = nil
			w.run()
			w.whole(truth(w.form))
			w.clean()
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

// unseen holds that nothing is visible of a run that ended before its commit was recorded.
func (w *world) unseen() {
	w.t.Helper()
	names, err := w.names(w.t.Context())
	recorded := slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, load.ControlFolder+"/"+load.IntentName) || name == load.ManifestName
	})
	visible := slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") })
	if err != nil || !recorded && len(visible) > 0 {
		w.t.Errorf("%v can be seen, %v", visible, err)
	}
}

// grace is how long a run that is told to stop may take: three seconds, and as much again
// for a slow machine.
const grace = 6 * time.Second

// TestStopInUpload stops runs while parts of an upload are on their way over a narrow line,
// or S3 has fallen silent. Nothing is left that can be seen, and the next run asks for no
// result again.
func TestStopInUpload(t *testing.T) {
	needNetwork(t)
	hole := []servers.Toxic{servers.BlackHole("a", servers.Upstream), servers.BlackHole("b", servers.Downstream)}
	for _, c := range []struct {
		name    string
		parts   int // that are there by then
		hole    []servers.Toxic
		outputs int
	}{
		{"as soon as it is begun", 0, nil, 1},
		{"in the second part", 1, nil, 1},
		{"two into a black hole", 1, hole, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			worlds, l, _ := newWideWorld(t, c.outputs)
			w := worlds[0]
			narrow := servers.Bandwidth("narrow", servers.Upstream, 2000)
			l.spoil(t, narrow)
			p := w.pipeline("")
			told := make(chan time.Time, 1)
			go func() { // what does not come in time fails the run below
				<-p.began
				for deadline := time.Now().Add(patience); !w.uploading(c.parts) && time.Now().Before(deadline); {
					time.Sleep(10 * time.Millisecond)
				}
				l.spoil(t, c.hole...)
				told <- time.Now()
				_ = p.Process.Signal(syscall.SIGTERM)
			}()
			o := w.do(p)
			if took := time.Since(<-told); o.code != exitTerminated || took > grace {
				t.Errorf("ended with %d, %s after SIGTERM:\n%s", o.code, took, o.stderr)
			}
			l.mend(t, append(slices.Clone(c.hole), narrow)...)
			w.unseen()
			if begun, err := w.uploads(t.Context()); len(c.hole) == 0 && (err != nil || len(begun) > 0) {
				t.Errorf("uploads of %v are not aborted, %v", begun, err)
			}
			w.service.Reset()
			w.run()
			if n := len(w.asked()); n > 0 {
				t.Errorf("the next run asks for %d windows again", n)
			}
			for _, w := range worlds {
				w.whole(truth(w.form))
				w.clean()
			}
		})
	}
}

// uploading tells whether a data object is being uploaded and the store has so many of its
// parts. A part of 5 MiB takes seconds.
func (w *world) uploading(parts int) bool {
	p := w.losing.(prefix)
	begun, err := p.list(w.t.Context())
	return err == nil && slices.ContainsFunc(begun, func(u types.MultipartUpload) bool {
		if strings.HasPrefix(*u.Key, p.path+load.ControlFolder) {
			return false
		}
		list, err := p.client.ListParts(w.t.Context(), &awss3.ListPartsInput{Bucket: aws.String(bucket), Key: u.Key, UploadId: u.UploadId})
		return err == nil && len(list.Parts) >= parts
	})
}

// large tells whether tests that take minutes are run too.
func large() bool { return os.Getenv("FORMETL_TEST_LARGE") != "" }
