package detail

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/transform"
)

var start = extracttest.Wall("2026-01-01")

// daily are windows of a day each, which hold ten results and one rejected one.
func daily(n int) []*reading.Window {
	windows := make([]*reading.Window, n)
	for i := range windows {
		w := &reading.Window{Done: true, Planned: extract.Planned{Window: extract.Window{From: start.AddDate(0, 0, i), To: start.AddDate(0, 0, i+1)}, Count: 11}}
		w.IDs, w.Stats = roaring64.New(), transform.Stats{Rows: 10, Rejected: 1}
		windows[i] = w
	}
	return windows
}

// send tells the observer of a window's attempts, as the transport does.
func send(o *Observer, w *reading.Window, attempts ...transport.Attempt) {
	for _, a := range attempts {
		o.mu.Lock()
		o.traffic.add(a, a.Start.Sub(o.start))
		if asked := o.asked(w); asked != nil {
			asked.add(a, a.Start.Sub(o.start))
		}
		o.mu.Unlock()
	}
}

// TestSpans: requests and results come to the span of their window, whatever became of it.
func TestSpans(t *testing.T) {
	o, windows := New(time.UTC), daily(5)
	at := func(number int, after time.Duration) transport.Attempt {
		return transport.Attempt{Number: number, Start: o.start.Add(after), Took: time.Second, Outcome: transport.OutcomeOK}
	}
	send(o, windows[0], at(1, 0)) // before there is a plan, nobody knows its windows
	windows[0].Planned.Window.From = time.Time{}
	windows[1].Taken, windows[2].Tries, windows[3].Done, windows[3].IDs = true, 2, false, nil
	windows[4].IDs, windows[4].Stats, windows[4].Planned.Count = nil, transform.Stats{}, 0
	o.Plan(windows)
	send(o, windows[0], at(1, 2*time.Second), at(2, 4*time.Second))
	send(o, windows[2], at(1, 3*time.Second))
	older, undated := daily(1)[0], daily(1)[0]
	older.Older, undated.Undated = &reading.Older{}, &reading.Undated{}
	send(o, undated, at(1, 9*time.Second))
	f := o.End(append(windows, older, undated))
	want := []Span{
		{Window: windows[0].Planned.Window, Expected: 11, Results: 11, Rejected: 1, Asked: Asked{Requests: 1, Retries: 1, Began: 2 * time.Second, Ended: 5 * time.Second}},
		{Window: windows[1].Planned.Window, Expected: 11, Results: 11, Rejected: 1, Taken: 1},
		{Window: windows[2].Planned.Window, Expected: 11, Results: 11, Rejected: 1, Again: 1, Asked: Asked{Requests: 1, Began: 3 * time.Second, Ended: 4 * time.Second}},
		{Window: windows[3].Planned.Window, Expected: 11, Results: 11, Rejected: 1, Unread: 1},
		{Window: windows[4].Planned.Window, Empty: 1},
		{Kind: Older, Expected: extract.Unknown, Results: 11, Rejected: 1},
		{Kind: Undated, Expected: extract.Unknown, Results: 11, Rejected: 1, Asked: Asked{Requests: 1, Began: 9 * time.Second, Ended: 10 * time.Second}},
	}
	for i := range want {
		want[i].Windows = 1
	}
	if !slices.Equal(f.Spans, want) {
		t.Errorf("got  %+v\nwant %+v", f.Spans, want)
	}
}

// TestManyWindows: more windows than there may be spans share them, and nothing is lost.
func TestManyWindows(t *testing.T) {
	for _, n := range []int{1, MostSpans, MostSpans + 1, 3*MostSpans + 7} {
		o, windows := New(time.UTC), daily(n)
		o.Plan(windows)
		var group sync.WaitGroup
		for _, some := range [][]*reading.Window{windows[:n/2], windows[n/2:]} {
			group.Go(func() {
				for _, w := range some {
					send(o, w, transport.Attempt{Number: 1, Start: o.start, Outcome: transport.OutcomeOK})
				}
			})
		}
		group.Wait()
		var sum Span
		f := o.End(windows)
		for i, s := range f.Spans {
			sum.Windows, sum.Results, sum.Expected, sum.Asked.Requests = sum.Windows+s.Windows, sum.Results+s.Results, sum.Expected+s.Expected, sum.Asked.Requests+s.Asked.Requests
			if i > 0 && !f.Spans[i-1].To.Equal(s.From) {
				t.Fatalf("%d windows: a gap before %v", n, s.From)
			}
		}
		if len(f.Spans) > MostSpans || sum.Windows != n || sum.Results != int64(11*n) || sum.Expected != sum.Results || sum.Asked.Requests != int64(n) {
			t.Errorf("%d windows: %d spans, in sum %+v", n, len(f.Spans), sum)
		}
	}
}

// TestTraffic: a run may last as long as it likes, and no attempt is lost.
func TestTraffic(t *testing.T) {
	var traffic Traffic
	for i := range 10_000 {
		a := transport.Attempt{Kind: transport.Kind(i % 2), Outcome: transport.OutcomeOK}
		if i%10 == 0 {
			a.Outcome = transport.OutcomeBusy
		}
		traffic.add(a, time.Duration(i)*time.Second)
	}
	var sum Moment
	for _, m := range traffic.Moments {
		sum.Pages, sum.Others, sum.Failed = sum.Pages+m.Pages, sum.Others+m.Others, sum.Failed+m.Failed
	}
	if want := (Moment{4000, 5000, 1000}); sum != want || len(traffic.Moments) > mostMoments || traffic.Step*mostMoments < 10_000*time.Second {
		t.Errorf("%+v in %d moments of %s", sum, len(traffic.Moments), traffic.Step)
	}
	if m := traffic.Moments[0]; m.Pages+m.Others+m.Failed != int64(traffic.Step/time.Second)+1 {
		t.Errorf("the first moment of %s has %+v", traffic.Step, m)
	}
}

// TestNobodyWatches: a run that nobody wants the detail of calls the same methods.
func TestNobodyWatches(t *testing.T) {
	var o *Observer
	ctx := t.Context()
	o.Plan(daily(1))
	o.Begin(nil)
	o.Rows(daily(1)[0], nil)
	o.Finish(nil, nil, transform.Stats{})
	if o.Requests(ctx) != ctx || o.Window(ctx, daily(1)[0]) != ctx || o.Snapshot(ctx, nil) != nil {
		t.Error("nobody changes something")
	}
}
