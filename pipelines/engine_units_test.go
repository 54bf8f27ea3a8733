package pipelines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

func wall(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse("2006-01-02", s)
	if err != nil {
		panic(err)
	}
	return t
}

func window(from, to string) extract.Window { return extract.Window{From: wall(from), To: wall(to)} }

func bitmap(ids ...uint64) *roaring64.Bitmap { return roaring64.BitmapOf(ids...) }

func TestStaleWindowsAreThoseReadFirst(t *testing.T) {
	a := &windowRun{number: 1, reading: reading{ids: bitmap(1, 2, 3)}}
	b := &windowRun{number: 3, reading: reading{ids: bitmap(3, 4)}}
	c := &windowRun{number: 2, reading: reading{ids: bitmap(5, 4)}}
	unread := &windowRun{}
	stale, twice := staleWindows([]*windowRun{a, b, c, unread})
	if len(stale) != 2 || stale[0] != c || stale[1] != a || !twice.Equals(bitmap(3, 4)) {
		t.Errorf("%d stale, %v twice", len(stale), twice)
	}
	if !a.ids.Equals(bitmap(1, 2, 3)) || !b.ids.Equals(bitmap(3, 4)) {
		t.Error("the windows' sets were changed")
	}
	if stale, twice := staleWindows([]*windowRun{a, {number: 4, reading: reading{ids: bitmap(9)}}}); len(stale) != 0 || !twice.IsEmpty() {
		t.Errorf("%v stale", stale)
	}
}

func TestPlausibleWindow(t *testing.T) {
	for _, c := range []struct {
		counts []int64
		rows   int64
		want   bool
	}{
		{nil, 5, false},
		{[]int64{5}, 5, true},
		{[]int64{5, 5, 5}, 4, false},
		{[]int64{5, 8}, 6, true},
		{[]int64{8, 5}, 5, true},
		{[]int64{5, 6}, 7, true}, // one came and went
		{[]int64{5, 6}, 4, true},
		{[]int64{5, 6}, 8, false},
		{[]int64{5, 6}, 3, false},
	} {
		w := windowRun{counts: c.counts, reading: reading{stats: transform.Stats{Rows: c.rows - 1, Rejected: 1}}}
		if got := w.plausible(); got != c.want {
			t.Errorf("%d of %v: %t", c.rows, c.counts, got)
		}
	}
}

func TestRowIDsLeaveRejectsOut(t *testing.T) {
	w := &windowRun{reading: reading{ids: bitmap(3, 5, 9), rejects: []transform.Reject{{ResultID: 3}, {ResultID: 9}}, stats: transform.Stats{Rows: 1, Rejected: 2}}}
	if ids := w.rowIDs(0, w.stats.Rows); !ids.Equals(bitmap(5)) || w.ids.GetCardinality() != 3 {
		t.Errorf("%v of %v", ids, w.ids)
	}
	none := &windowRun{reading: reading{ids: bitmap(1), rejects: []transform.Reject{{ResultID: 1}}, stats: transform.Stats{Rejected: 1}}}
	more := &windowRun{reading: reading{ids: bitmap(2, 40), stats: transform.Stats{Rows: 2}}}
	if rows, lo, hi := rowsOf([]*windowRun{none, w, more, {}}); rows != 3 || lo != 2 || hi != 40 {
		t.Errorf("%d rows, %d to %d", rows, lo, hi)
	}
}

func TestRejectsAreCountedByResult(t *testing.T) {
	reject := func(ids ...int64) *windowRun {
		w := &windowRun{reading: reading{stats: transform.Stats{Rejected: int64(len(ids)), Rejects: map[transform.Fault]int64{{Column: "c", Reason: "r"}: int64(len(ids))}}}}
		for _, id := range ids {
			w.rejects = append(w.rejects, transform.Reject{ResultID: id})
		}
		return w
	}
	for _, c := range []struct {
		windows []*windowRun
		most    int
		fails   bool
	}{
		{[]*windowRun{reject(1, 2)}, 2, false},
		{[]*windowRun{reject(1, 2), reject(2)}, 2, false},
		{[]*windowRun{reject(1, 2), reject(3)}, 2, true},
		{[]*windowRun{reject(1)}, 0, true},
		{nil, 0, false},
	} {
		f := &formRun{schema: &schemas.Schema{MaxRejects: c.most}, windows: c.windows}
		for _, w := range c.windows {
			f.rejects += w.stats.Rejected
		}
		err := f.checkRejects()
		if (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("max_rejects is %d (c: r: %d)", c.most, f.rejects)) {
			t.Errorf("%d windows, at most %d: %v", len(c.windows), c.most, err)
		}
	}
}

func TestOwnWindowsOfAWidenedRange(t *testing.T) {
	windows := []*windowRun{
		{planned: extract.Planned{Window: window("", "2026-01-01")}},
		{planned: extract.Planned{Window: window("2026-01-01", "2026-01-05")}},
		{planned: extract.Planned{Window: window("2026-01-05", "2026-01-09")}},
		{planned: extract.Planned{Window: window("2026-01-09", "2026-02-01")}},
		{undated: &undatedWindow{}},
	}
	names := func(ws []*windowRun) string {
		s := make([]string, 0, len(ws))
		for _, w := range ws {
			s = append(s, fmt.Sprint(slices.Index(windows, w)))
		}
		return strings.Join(s, " ")
	}
	for _, c := range []struct {
		own  extract.Window
		ask  bool // a range was asked for
		want string
	}{
		{window("", "2026-02-01"), true, "0 1 2 3"},
		{window("", "2026-02-01"), false, "0 1 2 3 4"},
		{window("", "2026-01-09"), false, "0 1 2 4"},
		{window("2026-01-01", "2026-01-09"), true, "1 2"},
		{window("2026-01-05", "2026-02-01"), true, "2 3"},
	} {
		f := &formRun{def: &definition.Definition{}, iv: interval.Interval{Asked: c.own, Read: window("", "2026-02-01")}, windows: windows}
		if c.ask {
			f.iv.Given.To = c.own.To
		}
		if got := names(f.ownWindows()); got != c.want {
			t.Errorf("%s asked %t: windows %s, want %s", c.own, c.ask, got, c.want)
		}
	}
}

func TestDivideIntoParts(t *testing.T) {
	planned := func(from, to string, n int64) *windowRun {
		return &windowRun{planned: extract.Planned{Window: window(from, to), Count: n}}
	}
	windows := []*windowRun{
		planned("", "2026-01-01", 10), planned("2026-01-01", "2026-01-20", 600_000), planned("2026-01-20", "2026-02-01", 500_000),
		planned("2026-02-01", "2026-02-10", 0), planned("2026-02-10", "2026-02-20", extract.Unknown), planned("2026-02-20", "2026-03-01", 5),
	}
	for partition, want := range map[definition.Partition]string{
		definition.PartitionNone:  "../2026-01-20 2026-01-20/2026-02-01 2026-02-10/2026-03-01",
		definition.PartitionYear:  "../2026-01-01 2026-01-01/2026-01-20 2026-01-20/2026-02-01 2026-02-10/2026-03-01",
		definition.PartitionMonth: "../2026-01-01 2026-01-01/2026-01-20 2026-01-20/2026-02-01 2026-02-10/2026-03-01",
	} {
		o := &datasetOutput{encoding: encoding{f: &formRun{def: &definition.Definition{}}, out: definition.Output{Partition: partition}}}
		var got []string
		for _, p := range o.divide(windows) {
			got = append(got, strings.ReplaceAll(p.String(), " 00:00:00", ""))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s", partition, s)
		}
	}
}

func TestStoppedRunTellsWhy(t *testing.T) {
	stop, other := errors.New("stopped by a test"), errors.New("disk full")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := stopped(ctx, other); err != other { //nolint:errorlint // as it is
		t.Errorf("before the stop: %v", err)
	}
	cancel(stop)
	recorded := &load.CommitError{RunID: "r", Recorded: true, Err: context.Canceled}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("window x: %w", stop), "stopped by a test"},
		{fmt.Errorf("window x: %w", context.Canceled), "stopped by a test"},
		{other, "stopped by a test; disk full"},
		{recorded, "stopped by a test; " + recorded.Error()},
	} {
		if err := stopped(ctx, c.err); !errors.Is(err, stop) || err.Error() != c.want {
			t.Errorf("%v: %q", c.err, err)
		}
	}
}

func TestLingeringContextOutlivesItsParent(t *testing.T) {
	stop := errors.New("stop")
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, release := load.Lingering(parent, time.Hour)
	cancel(stop)
	if ctx.Err() != nil {
		t.Error("it ended with its parent")
	}
	release()
	if ctx.Err() == nil {
		t.Error("it goes on after its release")
	}
	ctx, release = load.Lingering(parent, 0)
	defer release()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), stop) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	w := window("2026-01-01", "2026-01-02")
	for _, c := range []struct {
		err  error
		want string
	}{
		{&VerifyError{Counted: 5, Extracted: 4, Windows: []extract.Window{w}}, "the service counts 5 results and 4 were read; after 3 more readings they still do not agree in the windows 2026-01-01 00:00:00/2026-01-02 00:00:00; nothing was written: run again when the form is quieter, or set verify: false"},
		{&DuplicateError{ID: 7, Windows: []extract.Window{w, {}}}, "result 7 is in more than one window, 2026-01-01 00:00:00/2026-01-02 00:00:00 and undated, however often they are read; nothing was written: run again when the form is quieter"},
		{&NoFormsError{Patterns: []string{"a*"}, Chosen: []string{"b"}}, "no form matches a* and --form b; `formetl forms` lists those of the account"},
		{&FormsError{Forms: 3, Errors: []error{errors.New("one"), errors.New("two")}}, "2 of 3 forms failed:\none\ntwo"},
		{&FormsError{Forms: 1, Errors: []error{errors.New("one")}}, "one"},
		{&OutputsError{Errors: []error{errors.New("one"), errors.New("two")}}, "one\ntwo"},
		{&interval.RangeError{Window: extract.Window{From: w.To, To: w.From}}, "the range 2026-01-02 00:00:00/2026-01-01 00:00:00 holds no time: `to` is exclusive and must lie after `from`"},
		{&checkpoint.FolderError{Folder: "/s", Err: errors.New("full")}, "cannot keep results in /s: full; free space, or choose another folder with --state"},
		{&StdoutError{Err: errors.New("closed")}, "cannot write to standard output: closed"},
		{&definition.UnsupportedError{What: "x", Remedy: "do y"}, "x is not supported by this version; do y"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%T: %s", c.err, got)
		}
	}
}
