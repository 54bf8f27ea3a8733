package pipelines_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// living is a form that goes on while runs follow each other.
type living struct {
	*world
	form *formservice.Form
	o    pipelines.Options
	outs []definition.Output
	edit func(*definition.Definition)
}

// newLiving is a form with a result every eight hours from January 1st to the
// 20th, and one without a date.
func newLiving(t *testing.T, outs ...definition.Output) *living {
	t.Helper()
	var results []formservice.Result
	id := int64(0)
	for day := 1; day <= 20; day++ {
		for hour := 1; hour < 24; hour += 8 {
			id++
			results = append(results, pipelinestest.Result(id, fmt.Sprintf("2026-01-%02d %02d:30:00", day, hour), fmt.Sprint("r", id)))
		}
	}
	results = append(results, pipelinestest.Result(500, "", "unfinished"))
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, results)
	if len(outs) == 0 {
		outs = []definition.Output{days()}
	}
	l := &living{world: newWorld(t, form), form: form, o: options(), outs: outs, edit: func(*definition.Definition) {}}
	l.now("2026-01-21 00:00:30")
	return l
}

func (l *living) now(wall string) { l.o.Now = zoned(l.t, l.world, wall) }

func (l *living) definition() *definition.Definition {
	def := l.world.definition(slices.Clone(l.outs)...)
	def.Extract.Incremental, def.Extract.Lookback = true, 72*time.Hour
	l.edit(def)
	return def
}

func (l *living) insert(id int64, finished, answer string) {
	l.t.Helper()
	if _, err := l.form.Insert(pipelinestest.Result(id, finished, answer)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *living) finish(id int64, wall string) {
	l.t.Helper()
	if err := l.form.Finish(id, extracttest.Wall(wall)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *living) update(id int64, finished, answer string) {
	l.t.Helper()
	if err := l.form.Update(pipelinestest.Result(id, finished, answer)); err != nil {
		l.t.Fatal(err)
	}
}

// go_ runs, and gives the form's report and the days that were asked for.
func (l *living) goOn() (*pipelines.FormReport, []string) {
	l.t.Helper()
	r := &resumed{world: l.world, o: l.o, form: l.form}
	asked, report := r.asked(l.definition())
	return report.Forms[len(report.Forms)-1], asked
}

// check compares every dataset with the truth, and its watermark.
func (l *living) check(watermark string) {
	l.t.Helper()
	for _, o := range l.outs {
		m := l.checkDataset(strings.TrimSuffix(o.Path, "/"), pipelinestest.Truth(l.form, nil))
		if m.Watermark.String() != watermark {
			l.t.Errorf("%s: the watermark is %s, want %s", o.Path, m.Watermark, watermark)
		}
		l.checkSets(strings.TrimSuffix(o.Path, "/"), m)
	}
}

// checkSets fails if a part has no set of ids, or a set no part.
func (l *living) checkSets(name string, m *load.Manifest) {
	l.t.Helper()
	want := make([]string, 0, len(m.Parts))
	for _, p := range m.Parts {
		want = append(want, filepath.Join(l.path(name), filepath.FromSlash(load.IDsName(p.IDs))))
	}
	found, err := filepath.Glob(filepath.Join(l.path(name), "_ids", "*"))
	if err != nil {
		l.t.Fatal(err)
	}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		l.t.Errorf("%s: %d sets of ids, want %d", name, len(found), len(want))
	}
}

func TestIncrementalGoesOnFromTheWatermark(t *testing.T) {
	needs.Slow(t)
	partitions := []definition.Partition{definition.PartitionDay, definition.PartitionMonth, definition.PartitionYear, definition.PartitionNone}
	for _, partition := range needs.Sample(partitions, 2) {
		t.Run(string(partition), func(t *testing.T) {
			out := days()
			out.Partition = partition
			l := newLiving(t, out)
			l.goOn()
			l.check("2026-01-20 23:59:30")
			for hour := range 28 {
				now := extracttest.Wall("2026-01-21 01:10:00").Add(time.Duration(hour) * time.Hour)
				if hour%3 == 0 {
					l.insert(1000+int64(hour), now.Add(-20*time.Minute).Format(formservice.WallTime), "new")
				}
				l.now(now.Format(formservice.WallTime))
				f, asked := l.goOn()
				l.check(now.Add(-time.Minute).Format(formservice.WallTime))
				from := now.Add(-time.Minute).Add(-time.Hour).AddDate(0, 0, -3).Format(time.DateOnly)
				if hour == 0 {
					from = "2026-01-17"
				}
				if asked[0] != from || f.Older != 0 || f.Reread != 0 {
					t.Fatalf("at %s: asked for %v from %s on, %d and %d windows again", now, asked, from, f.Older, f.Reread)
				}
				if r := f.Requests; r.Count != 2 || r.Results > 5+int64(feedRequests(l.service)) || r.Retries != 0 || feedRequests(l.service) > 0 && hour != 23 {
					t.Fatalf("at %s: requests %+v, %d of them ask what changed, which is once a day", now, r, feedRequests(l.service))
				}
			}
		})
	}
}

// TestPartsWithoutTheirIDs are read again where they may hold a moved result.
func TestPartsWithoutTheirIDs(t *testing.T) {
	l := newLiving(t)
	damage := func(day string) {
		for _, p := range readManifest(t, l.path("days/_manifest.json")).Parts {
			if strings.HasPrefix(p.Path, "dt="+day) {
				l.put(filepath.Join("days", load.IDsName(p.IDs)), "garbage, and more of it")
			}
		}
	}
	l.goOn()
	damage("")
	l.finish(4, "2026-01-21 11:10:00")
	l.now("2026-01-21 12:00:00")
	if f, _ := l.goOn(); f.Older != 1 {
		t.Errorf("%d older windows", f.Older)
	}
	l.checkDataset("days", pipelinestest.Truth(l.form, nil))
	// A part that is read again for nothing gets its set all the same.
	l.form.Delete(8)
	l.o.Range = between(extracttest.Wall("2026-01-03"), extracttest.Wall("2026-01-04"))
	l.goOn()
	l.o.Range = definition.Range{}
	damage("2026-01-03")
	l.insert(8, "2026-01-21 13:05:00", "between the ids of the part")
	for i, now := range []string{"2026-01-21 13:30:00", "2026-01-21 14:30:00"} {
		l.now(now)
		if f, _ := l.goOn(); f.Older != 1-i {
			t.Errorf("%d older windows at %s", f.Older, now)
		}
	}
}

// TestUndatedAreAskedForByTheirIDs: one of many results without a date gets
// one. The others are read by their ids, and none is looked for.
func TestUndatedAreAskedForByTheirIDs(t *testing.T) {
	for name, lose := range map[string]bool{"known": false, "unknown": true} {
		t.Run(name, func(t *testing.T) {
			l := newLiving(t, days(), months())
			for id := int64(1000); id < 1300; id++ { // three times a hundred ids that follow each other
				l.insert(id, "", "unfinished")
			}
			l.goOn()
			l.now("2026-01-21 12:00:00")
			l.finish(1100, "2026-01-21 11:00:00")
			l.form.Delete(1200)
			if lose {
				if err := os.RemoveAll(l.path("days/_ids")); err != nil {
					t.Fatal(err)
				}
			}
			f, _ := l.goOn()
			if lose {
				l.checkDataset("days", pipelinestest.Truth(l.form, nil))
			} else {
				l.check("2026-01-21 11:59:00")
			}
			if r := f.Requests; !lose && (r.Count != 2 || r.Results > 10) {
				t.Errorf("requests %+v", r)
			}
			if f.Undated != 299 {
				t.Errorf("%d undated", f.Undated)
			}
		})
	}
}

// TestRangeThatMovesOn: a definition with `from: -90d` begins later each day. What older parts hold
// stays, and the rest is proven as before.
func TestRangeThatMovesOn(t *testing.T) {
	l := newLiving(t)
	l.edit = func(def *definition.Definition) { def.Extract.From = extracttest.Wall("2026-01-10") }
	l.goOn()
	l.now("2026-01-23 00:00:30")
	l.edit = func(def *definition.Definition) { def.Extract.From = extracttest.Wall("2026-01-12") }
	l.form.Delete(59) // of January 20th
	l.form.Delete(31) // of the 11th, which is no longer in the range
	l.insert(600, "2026-01-22 10:00:00", "new")
	f, _ := l.goOn()
	if m := readManifest(t, l.path("days/_manifest.json")); !f.Verified.Match || m.Rows != 33 || m.Parts[0].From != load.Wall(extracttest.Wall("2026-01-10")) {
		t.Errorf("%+v, %d rows from %s on", f.Verified, m.Rows, m.Parts[0].From)
	}
}
