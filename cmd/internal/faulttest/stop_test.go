package faulttest

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/toxiproxy"
)

// grace is how long a run that is told to stop may take: three seconds, and as much again
// for a slow machine.
const grace = 6 * time.Second

// manyForm is 60 days of 48 results of 900 bytes. The first ten are a sample
// for the schema.
func manyForm() *bulk {
	return &bulk{results: 60 * 48, values: 3, length: 300, from: january(1), step: 30 * time.Minute}
}

// manyJob writes a part for each day, one after the other.
func manyJob(service string) job {
	return job{service: service, requests: "concurrency: 1", extract: "from: 2025-01-01, to: 2025-03-02, window: 1d", part: "day"}
}

// terminate sends SIGTERM and holds that the run ends in order within the
// grace.
func (p *process) terminate(t testing.TB) {
	t.Helper()
	began := time.Now()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r := p.end(t)
	took := time.Since(began)
	if r.code != exitTerminated || !strings.Contains(r.stderr, "stopped by SIGTERM") {
		t.Errorf("ended with %d, want %d:\n%s", r.code, exitTerminated, r.stderr)
	}
	t.Logf("ended %s after SIGTERM", took.Round(time.Millisecond))
	if took > grace {
		t.Errorf("ended %s after SIGTERM, want %s at most", took, grace)
	}
	if len(r.stdout) > 0 {
		t.Errorf("wrote to standard output: %.200q", r.stdout)
	}
}

// checkAborted holds that no upload is begun and not completed: the next run
// encodes what the checkpoint holds.
func checkAborted(t testing.TB, b bucket) {
	t.Helper()
	for _, key := range b.begun(t) {
		t.Errorf("an upload of %s is not aborted", strings.TrimPrefix(key, prefix))
	}
}

// atPage gives a channel that is closed when the service is asked for its
// n-th page, and holds that answer and the later ones back until release
// is called.
func (b *bulk) atPage(t testing.TB, page int64) (reached chan struct{}, release func()) {
	t.Helper()
	reached, held := make(chan struct{}), make(chan struct{})
	told := sync.OnceFunc(func() { close(reached) })
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	b.before(func(n int64) {
		if n >= page {
			told()
			<-held
		}
	})
	return reached, release
}

// wait waits for what a process has to come to.
func (p *process) wait(t testing.TB, reached <-chan struct{}) {
	t.Helper()
	select {
	case <-reached:
	case <-time.After(patience()):
		t.Fatal("the run never came there")
	}
}

// recovers runs the definition again, undisturbed, and holds that it writes the
// truth, that nothing is left after clean, and that what was read before is not
// asked for again.
func recovers(t testing.TB, dir, definition string, form *bulk, p place, want rows, mostPages int64) {
	t.Helper()
	asked := form.pages.Load()
	run(t, dir, nil, "run", definition).wantOK(t)
	asked = form.pages.Load() - asked
	t.Logf("the next run asked for %d pages", asked)
	if most := mostPages + 1; asked > most { // one asks what changed
		t.Errorf("the next run asked for %d pages, want %d at most", asked, most)
	}
	check(t, p, want)
	checkSwept(t, dir, nil, definition, p)
}

// TestStopWithManyRead stops runs that have read 40 of 60 windows, for outputs
// on disk and on S3, and where S3 has fallen silent just then.
func TestStopWithManyRead(t *testing.T) {
	t.Parallel()
	const stopAt, days = 41, 60
	calm := manyForm()
	want := manyJob(calm.serve(t)).truth(t, calm.ids())
	stop := func(t *testing.T, p place, endpoint string, before, after func()) {
		t.Helper()
		form := manyForm()
		reached, release := form.atPage(t, stopAt)
		j := manyJob(form.serve(t))
		j.endpoint = endpoint
		dir := t.TempDir()
		definition := j.definition(t, dir, p)
		run := formetl(t, dir, nil, "run", definition)
		run.start(t)
		run.wait(t, reached)
		before()
		run.terminate(t)
		after()
		release()
		checkNothingVisible(t, p)
		if b, ok := p.(bucket); ok {
			checkAborted(t, b)
		}
		recovers(t, dir, definition, form, p, want, days-stopAt+3)
	}
	nothing := func() {}
	t.Run("disk", func(t *testing.T) {
		t.Parallel()
		stop(t, folder{t.TempDir() + "/lake"}, "", nothing, nothing)
	})
	needServer(t)
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		stop(t, newBucket(t), server.URL, nothing, nothing)
	})
	t.Run("s3 in a black hole", func(t *testing.T) {
		t.Parallel()
		b := newBucket(t)
		l := newLine(t, server.URL)
		hole := []toxiproxy.Toxic{toxiproxy.BlackHole("a", toxiproxy.Upstream), toxiproxy.BlackHole("b", toxiproxy.Downstream)}
		stop(t, b, l.url(), func() { l.spoil(t, hole...) }, func() { l.mend(t, hole...) })
	})
}

// TestStopInUpload stops runs while parts of an upload are on their way over
// a narrow line.
func TestStopInUpload(t *testing.T) {
	t.Parallel()
	needServer(t)
	calm := wideForm()
	want := wideJob(calm.serve(t)).truth(t, calm.ids())
	hole := []toxiproxy.Toxic{toxiproxy.BlackHole("a", toxiproxy.Upstream), toxiproxy.BlackHole("b", toxiproxy.Downstream)}
	for _, c := range []struct {
		name  string
		parts int // that are there by then
		hole  []toxiproxy.Toxic
		two   bool // outputs
	}{
		{"as soon as it is begun", 0, nil, false},
		{"in the second part", 1, nil, false},
		{"into a black hole", 1, hole, false},
		{"two into a black hole", 1, hole, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			form := wideForm()
			b := newBucket(t)
			l := newLine(t, server.URL)
			narrow := toxiproxy.Bandwidth("narrow", toxiproxy.Upstream, 2000)
			l.spoil(t, narrow)
			j := wideJob(form.serve(t))
			j.endpoint, j.settings = l.url(), ", part_size: 5MiB, parts_in_flight: 1"
			if c.two {
				j.also = newBucket(t)
			}
			dir := t.TempDir()
			definition := j.definition(t, dir, b)
			p := formetl(t, dir, nil, "run", definition)
			p.start(t)
			b.waitForUpload(t, c.parts)
			l.spoil(t, c.hole...)
			p.terminate(t)
			l.mend(t, append(slices.Clone(c.hole), narrow)...)
			checkNothingVisible(t, b)
			if len(c.hole) == 0 {
				checkAborted(t, b)
			}
			recovers(t, dir, definition, form, b, want, 0)
			if c.two {
				check(t, j.also, want)
			}
		})
	}
}

// waitForUpload waits until a data object is being uploaded and the store has
// so many of its parts. A part of 5 MiB takes seconds.
func (b bucket) waitForUpload(t testing.TB, parts int) {
	t.Helper()
	b.waitFor(t, "an upload", func() bool {
		for id, key := range b.begun(t) {
			if strings.HasPrefix(key, prefix+load.ControlFolder) {
				continue
			}
			list, err := b.client.ListParts(t.Context(), &awss3.ListPartsInput{Bucket: &b.name, Key: &key, UploadId: &id})
			if err == nil && len(list.Parts) >= parts {
				return true
			}
		}
		return false
	})
}

// waitFor looks at the bucket until something is there.
func (b bucket) waitFor(t testing.TB, what string, there func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience()); !there(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not there", what)
		}
	}
}

// TestStopWithManyPrepared stops a run that has prepared a third of its 60
// parts, over a line that makes that take long. All of it is aborted, and the
// next run asks for no result again.
func TestStopWithManyPrepared(t *testing.T) {
	stopLate(t, 0, func(t *testing.T, b bucket) {
		t.Helper()
		b.waitFor(t, "a third of the uploads", func() bool { return len(b.begun(t)) >= 20 })
	}, checkAborted)
}

// TestStopInCommit stops a run while its 60 parts get their names, over a line
// that makes that take long. What is recorded is finished by the next run, which
// then reads its own range.
func TestStopInCommit(t *testing.T) {
	needs.Long(t)
	stopLate(t, 60, func(t *testing.T, b bucket) {
		t.Helper()
		b.waitFor(t, "a part", func() bool { return len(visible(b.names(t))) > 0 })
	}, func(t testing.TB, b bucket) {
		t.Helper()
		t.Logf("%d objects are visible", len(visible(b.names(t))))
	})
}

// stopLate stops a run that has read everything, once the bucket is so far, and
// runs it again, which may ask for so many pages.
func stopLate(t *testing.T, mostPages int64, far func(*testing.T, bucket), stopped func(testing.TB, bucket)) {
	t.Helper()
	t.Parallel()
	needServer(t)
	calm := manyForm()
	want := manyJob(calm.serve(t)).truth(t, calm.ids())
	form := manyForm()
	b := newBucket(t)
	l := newLine(t, server.URL)
	j := manyJob(form.serve(t))
	j.endpoint = l.url()
	dir := t.TempDir()
	definition := j.definition(t, dir, b)
	slow := toxiproxy.Latency("slow", toxiproxy.Upstream, 100, 0)
	form.before(func(page int64) {
		if page == 60 {
			l.spoil(t, slow)
		}
	})
	p := formetl(t, dir, nil, "run", definition)
	p.start(t)
	far(t, b)
	p.terminate(t)
	l.mend(t, slow)
	stopped(t, b)
	recovers(t, dir, definition, form, b, want, mostPages)
}

// TestStopExport stops an export to S3 in the middle of its upload. Nothing may
// be left there.
func TestStopExport(t *testing.T) {
	t.Parallel()
	needServer(t)
	form := wideForm()
	b := newBucket(t)
	l := newLine(t, server.URL)
	narrow := toxiproxy.Bandwidth("narrow", toxiproxy.Upstream, 500)
	l.spoil(t, narrow)
	dir := t.TempDir()
	args := []string{
		"export", "--base-url", form.serve(t), "--account", "acme", "--form", "form1", "--timezone", "UTC",
		"-o", b.path() + "form1.ndjson", "--s3-endpoint", l.url(), "--s3-path-style",
	}
	p := formetl(t, dir, nil, args...)
	p.start(t)
	b.waitForUpload(t, 0)
	p.terminate(t)
	l.mend(t, narrow)
	if objects, uploads := b.objects(t), b.uploads(t); len(objects)+len(uploads) > 0 {
		t.Errorf("%d objects and %d uploads are left", len(objects), len(uploads))
	}
	run(t, dir, nil, args...).wantOK(t)
	objects := b.objects(t)
	if lines := strings.Count(string(objects["form1.ndjson"]), "\n"); lines != form.results || len(objects) != 1 {
		t.Errorf("%d results in %d objects", lines, len(objects))
	}
}
