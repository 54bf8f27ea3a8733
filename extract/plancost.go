package extract

import (
	"fmt"
	"time"

	"github.com/formetl/formetl/extract/transport"
)

// uncountedWindows is how many windows a plan without counts may have at a fair cost,
// besides one for each partition and cut.
const uncountedWindows = 100

// Cost returns how many Get Results requests the plan takes. If nothing was
// counted, it returns the least possible number: one for each window.
func (p *Plan) Cost() int64 {
	if pages := p.Pages(); pages != Unknown {
		return pages
	}
	var windows int64
	for _, w := range p.Windows {
		if w.Count != 0 {
			windows++
		}
	}
	return windows
}

// Fair returns how many Get Results requests are a fair cost of the plan: twice the pages of
// its results, and one for each partition and cut.
func (p *Plan) Fair() int64 {
	fair := p.partitions()
	for _, cut := range p.Range.Cuts {
		if !cut.IsZero() {
			fair++
		}
	}
	if p.Total == Unknown {
		return fair + uncountedWindows
	}
	size := p.Range.pageSize()
	return fair + 2*((p.Total+size-1)/size)
}

// partitions returns how many partitions contain windows that are read.
func (p *Plan) partitions() (n int64) {
	unit := p.Range.Partition
	if unit == UnitNone {
		return 0
	}
	var last int64
	for _, w := range p.Windows {
		if w.Count == 0 || w.Window.To.IsZero() {
			continue
		}
		if start := unit.Start(w.Window.To.Add(-time.Second)).Unix(); n == 0 || start != last {
			n, last = n+1, start
		}
	}
	return n
}

const fewerRequests = "read a shorter range of dates, or raise max_requests (source.requests.max_requests in the definition; --max-requests for export)"

// costly returns the error of a plan that needs more requests than are allowed.
func costly(problem, remedy string) error {
	return &transport.Error{Code: 78, Problem: problem, Remedy: remedy}
}

// TooCostly returns an error if the plan, with its counts, needs more than most requests.
// A most of 0 allows any number.
func (p *Plan) TooCostly(most int64) error {
	needed := int64(p.Requests) + p.Cost()
	if most == 0 || needed <= most {
		return nil
	}
	results, remedy := "an unknown number of results", fewerRequests
	if p.Total != Unknown {
		results = fmt.Sprintf("%d results", p.Total)
	}
	if !p.Range.Period.Auto() {
		remedy = "set extract.window: auto (export: leave out --window), " + remedy
	}
	return costly(fmt.Sprintf("the plan needs at least %d requests for %s (window: %s; windows: %d), but max_requests is %d; nothing was read", needed, results, p.Range.Period, len(p.Windows), most), remedy)
}
