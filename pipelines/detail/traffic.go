package detail

import (
	"time"

	"github.com/formetl/formetl/extract/transport"
)

// Bounds of the traffic.
const (
	mostMoments = 240
	firstStep   = 50 * time.Millisecond
)

// Traffic counts attempts of requests over the time of a run.
type Traffic struct {
	Step    time.Duration // the length of a moment
	Moments []Moment      // from the start of the form's run
}

// Moment counts the attempts that were sent within a step of time.
type Moment struct {
	Pages  int64 // that brought a page of results
	Others int64 // that brought something else, such as a count
	Failed int64 // that brought no answer of use
}

// add counts an attempt that was sent at a time since the start. When there would be too
// many moments, each two become one.
func (t *Traffic) add(a transport.Attempt, at time.Duration) {
	if t.Step == 0 {
		t.Step = firstStep
	}
	for at >= t.Step*mostMoments {
		*t = t.Coarser()
	}
	i := int(max(0, at) / t.Step)
	for len(t.Moments) <= i {
		t.Moments = append(t.Moments, Moment{})
	}
	m := &t.Moments[i]
	switch {
	case a.Outcome != transport.OutcomeOK:
		m.Failed++
	case a.Kind == transport.KindResults:
		m.Pages++
	default:
		m.Others++
	}
}

// Coarser returns the same traffic with moments of twice the length.
func (t Traffic) Coarser() Traffic {
	half := Traffic{Step: 2 * t.Step, Moments: make([]Moment, (len(t.Moments)+1)/2)}
	for i, m := range t.Moments {
		h := &half.Moments[i/2]
		h.Pages, h.Others, h.Failed = h.Pages+m.Pages, h.Others+m.Others, h.Failed+m.Failed
	}
	return half
}
