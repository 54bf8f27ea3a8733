package detail

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/reading"
)

// MostSpans bounds the spans of a form. A plan of more windows has several in each span.
const MostSpans = 2000

// Form is what an observer saw of a form.
type Form struct {
	Spans   []Span   // in order of time, older parts and results without a date last
	Traffic Traffic  // all requests of the form
	Days    []Day    // in order
	Dayless int64    // results with a date whose day is not known
	Columns []Column // nil unless all results were read
}

// Kind says which results a span holds.
type Kind string

// The kinds of spans.
const (
	Dated   Kind = ""               // of the run's range
	Older   Kind = "older parts"    // of parts outside the range, which were read again
	Undated Kind = "without a date" // those without a date
)

// Span is a window of a run, or several adjacent ones.
type Span struct {
	Kind Kind
	extract.Window
	Windows int
	Empty   int // windows that counts showed to be empty
	Taken   int // windows of which an earlier run had read something
	Again   int // windows that were read more than once
	Unread  int // windows that were not read to their end
	// Expected is how many results the plan counted, extract.Unknown if it did not count
	// all windows of the span.
	Expected int64
	Results  int64 // with the rejected ones
	Rejected int64
	Asked    Asked
}

// Asked are the requests for the results of a span.
type Asked struct {
	Requests, Retries int64         // first attempts, and later ones
	Began, Ended      time.Duration // of the first and the last attempt, since the form's start
}

// Observer watches the run of one form. Its methods may be called from several goroutines.
type Observer struct {
	start time.Time

	mu      sync.Mutex
	traffic Traffic
	spans   []Span // of the plan, with what was asked
	others  map[Kind]*Asked
	profile profile
}

// New returns an observer of a form whose run begins now. zone is the account's.
func New(zone *time.Location) *Observer {
	return &Observer{start: time.Now(), profile: profile{zone: zone}}
}

// Requests returns a context by which the observer sees all requests of the form.
func (o *Observer) Requests(ctx context.Context) context.Context {
	if o == nil {
		return ctx
	}
	return transport.Observe(ctx, func(a transport.Attempt) { o.see(a, nil) })
}

// Window returns a context by which the observer sees the requests of a window.
func (o *Observer) Window(ctx context.Context, w *reading.Window) context.Context {
	if o == nil {
		return ctx
	}
	return transport.Observe(ctx, func(a transport.Attempt) { o.see(a, w) })
}

// see adds an attempt to the traffic, and to its window if it is of one.
func (o *Observer) see(a transport.Attempt, w *reading.Window) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := a.Start.Sub(o.start)
	o.traffic.add(a, at)
	if w == nil {
		return
	}
	if asked := o.asked(w); asked != nil {
		asked.add(a, at)
	}
}

// asked returns where the requests of a window are counted, nil before there is a plan.
func (o *Observer) asked(w *reading.Window) *Asked {
	kind := kindOf(w)
	if kind == Dated {
		if i := o.at(w); i >= 0 {
			return &o.spans[i].Asked
		}
		return nil
	}
	if o.others[kind] == nil {
		o.others[kind] = &Asked{}
	}
	return o.others[kind]
}

func (s *Asked) add(a transport.Attempt, at time.Duration) {
	if s.Requests+s.Retries == 0 || at < s.Began {
		s.Began = at
	}
	s.Ended = max(s.Ended, at+a.Took)
	if a.Number > 1 {
		s.Retries++
	} else {
		s.Requests++
	}
}

func kindOf(w *reading.Window) Kind {
	switch {
	case w.Undated != nil:
		return Undated
	case w.Older != nil:
		return Older
	}
	return Dated
}

// at returns the index of the span that holds a window of the range, -1 for none.
func (o *Observer) at(w *reading.Window) int {
	i, found := slices.BinarySearchFunc(o.spans, w.Planned.Window.From, func(s Span, from time.Time) int { return s.From.Compare(from) })
	if !found {
		i--
	}
	return i
}

// Plan tells the windows that are to be read, in order of time. A run that begins again
// makes another plan.
func (o *Observer) Plan(windows []*reading.Window) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spans, o.others = nil, map[Kind]*Asked{}
	for some := range slices.Chunk(windows, max(1, (len(windows)+MostSpans-1)/MostSpans)) {
		o.spans = append(o.spans, Span{Window: extract.Window{From: some[0].Planned.Window.From, To: some[len(some)-1].Planned.Window.To}})
	}
}

// End returns what was seen. windows are those of the run as it ended.
func (o *Observer) End(windows []*reading.Window) *Form {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := &Form{Traffic: o.traffic, Spans: slices.Clone(o.spans)}
	f.Days, f.Dayless, f.Columns = o.profile.end()
	others := map[Kind]*Span{}
	for _, w := range windows {
		kind := kindOf(w)
		if kind == Dated {
			if i := o.at(w); i >= 0 {
				f.Spans[i].add(w)
			}
			continue
		}
		if others[kind] == nil {
			others[kind] = &Span{Kind: kind}
			if asked := o.others[kind]; asked != nil {
				others[kind].Asked = *asked
			}
		}
		others[kind].add(w)
	}
	for _, kind := range []Kind{Older, Undated} {
		if s := others[kind]; s != nil {
			f.Spans = append(f.Spans, *s)
		}
	}
	return f
}

// add adds a window to its span.
func (s *Span) add(w *reading.Window) {
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	s.Windows++
	count(&s.Empty, w.Done && w.IDs == nil)
	count(&s.Taken, w.Taken)
	count(&s.Again, w.Tries > 1)
	count(&s.Unread, !w.Done)
	s.Results, s.Rejected = s.Results+w.Results(), s.Rejected+w.Stats.Rejected
	switch expected := w.Planned.Count; {
	case expected == extract.Unknown || kindOf(w) != Dated:
		s.Expected = extract.Unknown
	case s.Expected != extract.Unknown:
		s.Expected += expected
	}
}
