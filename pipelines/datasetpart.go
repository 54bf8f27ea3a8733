package pipelines

import (
	"sync"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// partTarget is how many results a part takes in, where counts tell: windows
// that follow each other share a part up to here.
const partTarget = 1_000_000

// datasetPart is one part of the run: the windows that share an object.
type datasetPart struct {
	windows  []*windowRun
	from, to time.Time
	undated  bool

	mu       sync.Mutex
	reading  int                // the last reading of its windows that it was made of, 0 for none
	prepared *load.PreparedPart // nil before, and where there are no rows
	columns  []load.Column      // that it was prepared with
}

// String is the part's window, for its footer.
func (p *datasetPart) String() string {
	if p.undated {
		return "undated"
	}
	return extract.Window{From: p.from, To: p.to}.String()
}

// divide assigns windows to parts: within a partition, windows that follow
// each other share one until it is large. A window that counts show empty is
// in no part; if it must be read after all it is planned anew.
func (o *datasetOutput) divide(windows []*windowRun) {
	unit := o.out.Partition.unit()
	var at *datasetPart
	var rows int64
	for _, w := range windows {
		p := w.planned
		if p.Count == 0 {
			at = nil
			continue
		}
		same := at != nil && (unit == extract.UnitNone || unit.Start(last(at.to)).Equal(unit.Start(last(p.Window.To))))
		if !same || rows+max(0, p.Count) > partTarget && rows > 0 {
			at, rows = &datasetPart{from: p.Window.From}, 0
			o.list = append(o.list, at)
		}
		at.windows = append(at.windows, w)
		at.to = p.Window.To
		rows += max(0, p.Count)
		o.parts[w] = at
	}
}

// last is the last second of a window that ends at to.
func last(to time.Time) time.Time { return to.Add(-time.Second) }

// addUndated adds the part of the results without a date.
func (o *datasetOutput) addUndated(w *windowRun) {
	p := &datasetPart{windows: []*windowRun{w}, undated: true}
	o.list = append(o.list, p)
	o.parts[w] = p
}
