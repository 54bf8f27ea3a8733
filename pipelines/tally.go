package pipelines

import (
	"sync"
	"sync/atomic"

	"github.com/formetl/formetl/pipelines/reading"
)

// tally counts the windows of a plan and those that were read, for whoever watches.
// A window that is read again counts once, and one outside the plan does not count.
type tally struct {
	planned, done atomic.Int64
	seen          sync.Map // windows that were counted
}

// plan notes the windows of a plan. Windows that are known to be empty are done.
func (t *tally) plan(windows []*reading.Window) {
	t.planned.Store(int64(len(windows)))
	t.noteDone(windows)
}

// noteDone counts those of the windows that are done.
func (t *tally) noteDone(windows []*reading.Window) {
	for _, w := range windows {
		if w.Done {
			t.note(w)
		}
	}
}

// note counts a window that is read.
func (t *tally) note(w *reading.Window) {
	if !w.OfRange() {
		return
	}
	if _, again := t.seen.LoadOrStore(w, true); !again {
		t.done.Add(1)
	}
}
