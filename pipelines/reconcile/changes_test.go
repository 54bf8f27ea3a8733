package reconcile

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

// at reads a time of one day.
func at(clock string) time.Time {
	t, err := time.Parse(time.DateTime, "2026-03-01 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

func change(id int64, clock string) extract.Change { return extract.Change{ID: id, At: at(clock)} }

// manifest knows changes up to a time, and holds some of the margin.
func changesKnown(knownTo string, held ...extract.Change) *load.Manifest {
	c := &load.Changes{Method: load.MethodChanges, KnownTo: load.Wall(at(knownTo))}
	for _, h := range held {
		c.Known = append(c.Known, entry(h))
	}
	return &load.Manifest{Changes: c}
}

// TestKnown: datasets together know what each of them knows.
func TestKnown(t *testing.T) {
	early, late := changesKnown("10:00:00"), changesKnown("12:00:00")
	early.Changes.Later, late.Changes.Later = []int64{7}, []int64{3, 7}
	early.Changes.UnnamedTo = load.Wall(at("09:00:00"))
	for _, manifests := range [][]*load.Manifest{{early, late}, {late, early}} {
		got, known := KnownChanges(manifests)
		if !known || !got.KnownTo.Equal(at("10:00:00")) {
			t.Errorf("known %v, up to %s", known, got.KnownTo)
		}
		later := (&Changes{base: got, Named: []extract.Change{{ID: 8, Dates: []time.Time{at("07:00:00")}}, {ID: 9}, {ID: 10, Dates: []time.Time{at("07:00:01")}}}}).laterThan(at("07:00:01"))
		if !slices.Equal(got.Later, []int64{3, 7}) || got.UnnamedTo != early.Changes.UnnamedTo || !later.Equal(idset.Of(3, 7, 10)) {
			t.Errorf("%+v, and %v are later", got, later)
		}
	}
	for name, manifests := range map[string][]*load.Manifest{
		"no dataset": nil, "one was never committed": {early, nil}, "one was reset": {early, {}},
		"one knows no moment": {early, {Changes: &load.Changes{Method: load.MethodLookback}}},
	} {
		if got, known := KnownChanges(manifests); known || !got.KnownTo.IsZero() {
			t.Errorf("%s: %+v is known", name, got)
		}
	}
}

// TestNamed: a change is named unless every dataset holds it.
func TestNamed(t *testing.T) {
	manifests := []*load.Manifest{changesKnown("10:00:00", change(1, "09:00:00"), change(2, "08:30:00")), changesKnown("11:00:00", change(1, "09:00:00"), change(3, "10:30:00"))}
	base, _ := KnownChanges(manifests)
	s := &Changes{base: base}
	s.take(&extract.Feed{Changes: []extract.Change{
		change(4, "11:30:00"), change(3, "10:30:00"), change(1, "09:00:00"), change(2, "08:30:00"), change(5, "07:59:59"),
	}}, manifests, true)
	ids := make([]int64, 0, len(s.Named))
	for _, c := range s.Named {
		ids = append(ids, c.ID)
	}
	// The second dataset does not list 3's change as the first one does not know it, and
	// 2's change lies before the second one's margin.
	if !slices.Equal(ids, []int64{4, 3}) {
		t.Errorf("named %v", ids)
	}
}

// TestManifest: what the next manifest says after different ends of a run.
func TestManifest(t *testing.T) {
	base := load.Changes{Method: load.MethodChanges, KnownTo: load.Wall(at("10:00:00")), Known: []load.ChangedResult{entry(change(1, "09:00:00"))}, Witness: "user_ip"}
	start := func() *Changes {
		s := &Changes{base: base, state: base, Usable: true, Continues: true, margin: []extract.Change{change(4, "11:30:00"), change(3, "10:30:00"), change(1, "09:45:00")}}
		s.Named = s.margin[:2]
		s.state.KnownTo = load.Wall(at("11:30:00"))
		return s
	}
	read := idset.Of(4)
	for _, c := range []struct {
		name    string
		end     changesEnd
		method  string
		knownTo string
		known   []int64
	}{
		{"what was read and what was held", changesEnd{Seen: read}, load.MethodChanges, "11:30:00", []int64{1, 4}},
		{"pieces of an earlier run", changesEnd{Seen: read, TookOver: true}, load.MethodChanges, "10:00:00", []int64{1}},
		{"a range of its own", changesEnd{Seen: read, Aside: true}, load.MethodChanges, "10:00:00", []int64{1}},
		{"a lookback", changesEnd{Seen: read, Lookback: true}, load.MethodLookback, "11:30:00", []int64{1, 4}},
	} {
		got := start().manifest(c.end)
		ids := make([]int64, 0, len(got.Known))
		for _, k := range got.Known {
			ids = append(ids, k.ID)
		}
		want := load.WallTime{}
		if c.knownTo != "" {
			want = load.Wall(at(c.knownTo))
		}
		if got.Method != c.method || got.KnownTo != want || !slices.Equal(ids, append([]int64{}, c.known...)) || got.Witness != "user_ip" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	s := start()
	s.base.Method = ""
	if got := s.manifest(changesEnd{Aside: true}); got != nil {
		t.Errorf("a manifest that says nothing of changes says %+v", got)
	}
}

// TestUnnamedTo: a run that ends before the changes that it looked at leaves results
// behind its end that no change names, until one reads up to there.
func TestUnnamedTo(t *testing.T) {
	for _, c := range []struct {
		name      string
		before    string // unnamed_to of the manifests
		continues bool
		end       changesEnd
		want      string
	}{
		{"up to now", "", false, changesEnd{To: at("11:29:00")}, ""},
		{"up to a time of the past", "", false, changesEnd{To: at("08:00:00")}, "09:30:00"},
		{"so far again", "09:30:00", true, changesEnd{To: at("08:00:00")}, "09:30:00"},
		{"not quite so far", "09:30:00", true, changesEnd{To: at("09:29:59")}, "09:30:00"},
		{"and behind it", "09:30:00", true, changesEnd{To: at("09:30:00")}, ""},
		{"a range of its own", "09:30:00", false, changesEnd{To: at("11:00:00"), Aside: true}, "09:30:00"},
		{"in place of all", "10:30:00", false, changesEnd{To: at("09:00:00")}, "09:30:00"},
		{"a run that is continued ends early", "", true, changesEnd{To: at("08:00:00")}, ""},
	} {
		base := load.Changes{Method: load.MethodChanges, KnownTo: load.Wall(at("10:00:00"))}
		if c.before != "" {
			base.UnnamedTo = load.Wall(at(c.before))
		}
		s := &Changes{base: base, state: base, Usable: true, Continues: c.continues}
		s.state.KnownTo = load.Wall(at("11:30:00"))
		c.end.Seen = idset.Set{}
		var want load.WallTime
		if c.want != "" {
			want = load.Wall(at(c.want))
		}
		if got := s.manifest(c.end); got.UnnamedTo != want {
			t.Errorf("%s: %s, want %s", c.name, got.UnnamedTo, want)
		}
	}
}

// TestOpenSecond: a change of the newest second is not known until that second is over.
func TestOpenSecond(t *testing.T) {
	all := []extract.Change{change(4, "11:30:00"), change(3, "11:29:59")}
	s := &Changes{Usable: true, margin: all, Named: all, open: at("11:30:00")}
	s.state.KnownTo = load.Wall(at("11:30:00"))
	if s.Saw(all[0]) || !s.Saw(all[1]) {
		t.Error("a further change of the open second would look the same")
	}
	if m := s.manifest(changesEnd{Seen: idset.Of(3, 4)}); !slices.Equal(m.Known, []load.ChangedResult{entry(all[1])}) {
		t.Errorf("%+v are listed", m.Known)
	}
	waits := 0
	f := reading.Form{Wait: func(_ context.Context, d time.Duration) error {
		if waits++; d < time.Second {
			t.Errorf("a wait of %s", d)
		}
		return nil
	}}
	for _, c := range []struct {
		read  []extract.Change
		waits int
	}{{all[1:], 0}, {all, 1}} {
		if err := s.close(t.Context(), f, c.read, all[0].At); err != nil || waits != c.waits || !s.Saw(all[0]) {
			t.Errorf("%d waits before %v is read, %v", waits, c.read, err)
		}
	}
	failed := errors.New("the run was stopped")
	f.Wait = func(context.Context, time.Duration) error { return failed }
	if err := s.close(t.Context(), f, all, all[0].At); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// TestMarginAfterABulk: changes that could not be told apart are not met again.
func TestMarginAfterABulk(t *testing.T) {
	c := load.Changes{KnownTo: load.Wall(at("10:00:00"))}
	if got := knownFrom(c); !got.Equal(at("08:00:00")) {
		t.Errorf("from %s", got)
	}
	c.KnownFrom = c.KnownTo
	if got := knownFrom(c); !got.Equal(at("10:00:00")) {
		t.Errorf("from %s", got)
	}
	c.KnownTo = load.Wall(at("15:00:00"))
	if got := knownFrom(c); !got.Equal(at("13:00:00")) {
		t.Errorf("from %s", got)
	}
}

// TestStateOfAResumedRun: a header keeps the moment of a run that reads everything.
func TestStateOfAResumedRun(t *testing.T) {
	s := &Changes{Usable: true, state: load.Changes{KnownTo: load.Wall(at("10:00:00")), Witness: "user_ip"}}
	again := ResumeChanges(nil, s.State())
	if !again.Usable || again.Continues || !again.state.KnownTo.Equal(at("10:00:00")) {
		t.Errorf("%+v", again)
	}
	if s.Continues = true; s.State() != nil {
		t.Error("a run that continues the datasets needs no moment")
	}
	if none := ResumeChanges(nil, nil); none.Usable || none.Reason == "" {
		t.Errorf("%+v", none)
	}
	if got := NoChanges(nil, "because").manifest(changesEnd{}); !reflect.DeepEqual(*got, load.Changes{Method: load.MethodLookback, Reason: "because"}) {
		t.Errorf("%+v", got)
	}
}

// asked is a client that answers no question about results but keeps it.
type asked struct {
	extract.Client
	last extract.ResultsQuery
	err  error
}

func (a *asked) PageSize() int { return 100 }

func (a *asked) Results(_ context.Context, _ string, q extract.ResultsQuery) (*page.Page, error) {
	a.last = q
	return nil, a.err
}

// TestFeedThatIsTooLong: what changed before the lookback is asked for by itself, if earlier runs
// knew what changed. Where that is not told either, every part may be stale.
func TestFeedThatIsTooLong(t *testing.T) {
	lookback := extract.Window{From: at("06:00:00")}
	for _, c := range []struct {
		known, newest, now string
		continues          bool
		knownTo, knownFrom string
	}{
		{"10:00:00", "11:00:00", "12:00:00", true, "11:00:00", "11:00:00"},
		{"11:00:00", "11:00:00", "12:00:00", true, "11:00:00", "11:00:01"},
		{"10:00:00", "11:00:00", "10:30:00", false, "10:30:00", "10:30:00"},
	} {
		failed := &extract.FeedError{Problem: "too long", Sorts: true, Newest: at(c.newest)}
		client := &asked{err: failed}
		s := NoChanges([]*load.Manifest{changesKnown(c.known, change(1, "09:00:00"))}, "")
		err := s.askOlder(t.Context(), reading.Form{Client: client, Def: &definition.Definition{}}, ChangesSince{Continues: c.continues, Lookback: lookback},
			failed, func(newest time.Time) time.Time { return newest }, at(c.now))
		if err != nil || s.AllStale != c.continues || s.Usable || s.Reason != "too long" || s.state.KnownTo != load.Wall(at(c.knownTo)) || s.state.KnownFrom != load.Wall(at(c.knownFrom)) || s.state.Known != nil {
			t.Errorf("%+v: %+v, %v", c, s, err)
		}
		if c.continues && client.last.Window != (extract.Window{To: lookback.From}) {
			t.Errorf("asked for %+v", client.last)
		}
	}
}

// TestNoWitness: a run that was misled forgets the proof that the service sorts.
func TestNoWitness(t *testing.T) {
	f := reading.Form{Now: func() time.Time { return at("12:00:00") }}
	m := changesKnown("10:00:00")
	m.Changes.Witness = "user_ip"
	void := NoChanges([]*load.Manifest{m}, "")
	void.Usable = true
	void.Void(f, "why")
	for _, s := range []*Changes{void, ChangesInDoubt([]*load.Manifest{m}, f, &extract.FeedError{Problem: "why"})} {
		if s.Usable || s.Reason != "why" || s.state.Witness != "" || !s.state.WitnessAt.Equal(at("12:00:00")) || !s.state.KnownTo.Equal(at("10:00:00")) {
			t.Errorf("%+v", s)
		}
	}
	// What only could not be read proves nothing of the order, but older parts may be stale.
	s := ChangesInDoubt([]*load.Manifest{m}, f, &extract.FeedError{Problem: "why", Sorts: true, Newest: at("11:00:00")})
	if !s.AllStale || !s.UndatedStale || s.state.Witness != "user_ip" || !s.state.KnownTo.Equal(at("10:00:00")) {
		t.Errorf("%+v", s)
	}
}
