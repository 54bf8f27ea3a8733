package yeartest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/history"
	"github.com/formetl/formetl/extract/formservice"
)

// scene is a dataset after a run that went well, for a test to spoil.
type scene struct {
	w       *world
	run     *run
	before  *dataset // that the run began from
	dataset *dataset // after it
}

// TestChecksNotice spoils what a run left, or what is known of it, and has the
// checks tell.
func TestChecksNotice(t *testing.T) {
	from := time.Date(2026, 3, 3, 6, 0, 0, 0, time.UTC)
	w := newWorld(t, 1, way{sorts: true, changes: auto}, from, from.AddDate(0, 0, 9))
	w.figures = newFigures()
	p := w.pipelines[0]
	for i, at := range []time.Time{from, from.Add(12 * time.Hour)} {
		if i > 0 {
			w.live(from, at) // something is new
		}
		w.hourly(t, &run{number: 1 + i, pipeline: p, at: at, told: at, perDay: usualPerDay, origins: map[string]*origin{}})
	}
	last := p.recent[1]
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s *scene)
		want  string
	}{
		{"nothing", func(*testing.T, *scene) {}, ""},
		{"a result was there all the time", addResult, "is missing"},
		{"a result of long ago was there all the time", addOldResult, "is missing"},
		{"a row of long ago was edited before", changeOldRow, "which was"},
		{"a row of long ago was deleted before", deleteOldRow, "which was"},
		{"a row is no state of its result", changeRow, "which was"},
		{"a row is in the part of another date", changeDate, "which was"},
		{"the watermark was higher", func(_ *testing.T, s *scene) {
			s.before.manifest.Watermark.Time = s.before.manifest.Watermark.Add(24 * time.Hour)
		}, "the watermark fell"},
		{"the run began earlier", func(_ *testing.T, s *scene) { s.run.told = s.run.told.Add(-time.Hour) }, "beyond"},
		{"the run began later", func(_ *testing.T, s *scene) { s.run.told = s.run.told.Add(time.Hour) }, "should be"},
		{"a part was written to", touch, "was written to"},
		{"a part is gone", removePart, "no such file"},
		{"a result is in two parts", doubleRow, "is here as"},
		{"a row is lost", loseRow, "the manifest says"},
		{"parts overlap", overlap, "have time in common"},
		{"the manifest is gone", func(t *testing.T, s *scene) {
			must(t, os.Remove(filepath.Join(s.dataset.dir, "_manifest.json")))
		}, "the manifest is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, w, last)
			c.spoil(t, s)
			_, err := w.judge(s.run, s.before)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the checks say %v, and should say: %s", err, c.want)
			}
		})
	}
}

// newScene is a copy of the first dataset as it is now, which looks as if it
// had no part in the run's range before the run.
func newScene(t *testing.T, w *world, r *run) *scene {
	t.Helper()
	after := *w.pipelines[0].datasets[1]
	after.dir = t.TempDir()
	must(t, os.CopyFS(after.dir, os.DirFS(w.pipelines[0].datasets[1].dir)))
	before := after
	before.raw, before.parts, before.rows, before.seen = []byte("{}"), map[string]*part{}, map[int64]*row{}, map[string]string{}
	before.manifest.Watermark.Time = after.manifest.Watermark.Add(-time.Hour)
	for path, p := range after.parts {
		if !p.fresh {
			kept := *p
			kept.modified = modified(t, filepath.Join(after.dir, path))
			before.parts[path], before.seen[path] = &kept, p.SHA256
			for _, r := range p.rows {
				before.rows[r.id] = r
			}
		}
	}
	again := &run{
		number: r.number, pipeline: r.pipeline, at: r.at, told: r.told, start: r.start, end: r.end, took: r.took,
		report: r.report, origins: r.origins,
	}
	return &scene{w, again, &before, &after}
}

func modified(t *testing.T, name string) time.Time {
	t.Helper()
	info, err := os.Stat(name)
	must(t, err)
	return info.ModTime()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// part is the last part that the run made, or that it did not touch.
func (s *scene) part(fresh bool) *part {
	var found *part
	for _, p := range s.dataset.parts {
		if p.fresh == fresh && !p.Undated && (found == nil || p.From.After(found.From.Time)) {
			found = p
		}
	}
	return found
}

func addResult(t *testing.T, s *scene) { add(t, s, 25*time.Hour) }

func addOldResult(t *testing.T, s *scene) { add(t, s, 20*24*time.Hour) }

// add has a result be there since the beginning that is as old as that.
func add(t *testing.T, s *scene, age time.Duration) {
	f := s.dataset.form
	date := s.dataset.manifest.Watermark.Add(-age)
	f.results[1], f.days[dayOf(date)][1] = states{{To: history.Now, Date: date, Is: "{}"}}, true
	t.Cleanup(func() {
		delete(f.results, 1)
		delete(f.days[dayOf(date)], 1)
	})
}

// change spoils the last state of a row that the run read.
func change(t *testing.T, s *scene, spoil func(*state)) {
	t.Helper()
	spoilLast(t, s, s.part(true).rows[0].id, spoil)
}

func spoilLast(t *testing.T, s *scene, id int64, spoil func(*state)) {
	t.Helper()
	h := s.dataset.form.results[id]
	last := &h[len(h)-1]
	was := *last
	spoil(last)
	t.Cleanup(func() { *last = was })
}

// changeOld spoils the last state of a row of the oldest part.
func changeOld(t *testing.T, s *scene, spoil func(*state)) {
	t.Helper()
	var oldest *part
	for _, p := range s.dataset.parts {
		if !p.Undated && (oldest == nil || p.From.Before(oldest.From.Time)) {
			oldest = p
		}
	}
	spoilLast(t, s, oldest.rows[0].id, spoil)
}

func changeOldRow(t *testing.T, s *scene) { changeOld(t, s, func(last *state) { last.Is = "{}" }) }

func deleteOldRow(t *testing.T, s *scene) {
	changeOld(t, s, func(last *state) { last.To = last.From + 1 })
}

func changeRow(t *testing.T, s *scene) { change(t, s, func(last *state) { last.Is = "{}" }) }

func changeDate(t *testing.T, s *scene) {
	change(t, s, func(last *state) { last.Date = last.Date.AddDate(0, 0, -5) })
}

func touch(t *testing.T, s *scene) {
	name := filepath.Join(s.dataset.dir, s.part(false).Path)
	at := modified(t, name).Add(time.Second)
	must(t, os.Chtimes(name, at, at))
}

func removePart(t *testing.T, s *scene) {
	must(t, os.Remove(filepath.Join(s.dataset.dir, s.part(false).Path)))
}

// rewrite changes the lines of a part that the run made; where honest, the
// manifest says so.
func (s *scene) rewrite(t *testing.T, honest bool, edit func(data []byte) []byte) {
	t.Helper()
	p := s.part(true)
	name := filepath.Join(s.dataset.dir, p.Path)
	data, err := os.ReadFile(name)
	must(t, err)
	data = edit(data)
	must(t, os.WriteFile(name, data, 0o600))
	s.manifest(t, func(parts []any) {
		for _, e := range parts {
			e, _ := e.(map[string]any)
			if e["path"] != p.Path {
				continue
			}
			sum := sha256.Sum256(data)
			e["bytes"], e["sha256"] = len(data), hex.EncodeToString(sum[:])
			if honest {
				e["rows"] = bytes.Count(data, []byte("\n"))
			}
		}
	})
}

// manifest changes what the manifest lists.
func (s *scene) manifest(t *testing.T, edit func(parts []any)) {
	t.Helper()
	name := filepath.Join(s.dataset.dir, "_manifest.json")
	data, err := os.ReadFile(name)
	must(t, err)
	var m map[string]any
	must(t, json.Unmarshal(data, &m))
	parts, _ := m["parts"].([]any)
	edit(parts)
	data, err = json.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(name, data, 0o600))
}

func doubleRow(t *testing.T, s *scene) {
	data, err := os.ReadFile(filepath.Join(s.dataset.dir, s.part(false).Path))
	must(t, err)
	line, _, _ := bytes.Cut(data, []byte("\n"))
	s.rewrite(t, true, func(data []byte) []byte { return append(append(data, line...), '\n') })
}

func loseRow(t *testing.T, s *scene) {
	s.rewrite(t, false, func(data []byte) []byte { return data[bytes.IndexByte(data, '\n')+1:] })
}

func overlap(t *testing.T, s *scene) {
	path := s.part(true).Path
	s.manifest(t, func(parts []any) {
		for _, e := range parts {
			if e, _ := e.(map[string]any); e["path"] == path {
				e["from"] = "2026-01-01 00:00:00"
			}
		}
	})
}

// TestBudgetIsChecked has a run spend more than there is.
func TestBudgetIsChecked(t *testing.T) {
	from := time.Date(2026, 3, 3, 6, 0, 0, 0, time.UTC)
	w := &world{ledger: []sent{{from.Add(-25 * time.Hour), 90, 90}, {from.Add(-time.Hour), 90, 90}}}
	for n, want := range map[int]bool{10: true, 11: false} {
		w.ledger = w.ledger[:2:2]
		_, err := w.overspent(&run{told: from, perDay: 100}, make([]formservice.Request, n))
		if (err == nil) != want {
			t.Errorf("%d requests, of which 10 are left: %v", n, err)
		}
	}
}

// TestEndsAreChecked tells which ends are to be expected of a run.
func TestEndsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name  string
		run   *run
		spent bool
		want  bool
	}{
		{"well", &run{}, false, true},
		{"busy for no reason", &run{code: 75}, false, false},
		{"without a budget", &run{code: 75}, true, true},
		{"in an outage", &run{code: 75, outage: refuses}, false, true},
		{"well in an outage", &run{outage: refuses}, false, false},
		{"in a storm", &run{code: 75, storm: 0.2}, false, true},
		{"killed", &run{killed: true, killAt: 3}, false, true},
		{"killed by nobody", &run{killed: true}, false, false},
		{"a bug", &run{code: 70, storm: 0.2}, false, false},
		{"a count that does not agree", &run{code: 65}, false, false},
	} {
		if got := c.run.mayEnd(c.spent); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
