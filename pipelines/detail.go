package pipelines

import (
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/detail"
	"github.com/formetl/formetl/pipelines/reading"
)

// Detail is what a page shows of a form besides its report.
type Detail struct {
	*detail.Form
	// Plan is what the run expected, as a plan of it would have told, but without its
	// windows: Windows is how many there were. It is nil if there was no plan.
	Plan    *FormPlan
	Windows int
}

// observer returns who watches the run of a form, nil if nobody wants its Detail.
func (o Options) observer(def *definition.Definition) *detail.Observer {
	if !o.Detailed {
		return nil
	}
	return detail.New(def.Source.Zone)
}

// watchPlan notes what the plan lets a run expect. It asks nothing of the service.
func watchPlan(f *formRun) {
	if f.seen == nil {
		return
	}
	r, plan := f.reader, f.reconciler.Plan
	f.seen.Plan(f.reconciler.Windows)
	p := &FormPlan{Form: r.Name, Range: f.report.Range, AtMost: r.Filtered()}
	changed := p.follows(r.Form, f.iv, f.outputs, f.o.Now())
	stale := changed.stale(f.iv.Read)
	p.take(plan, stale)
	p.sum(changed, plan, int64(plan.Requests+laterCounts(r.Form, f.iv)+len(stale)))
	f.report.Detail = &Detail{Plan: p, Windows: len(p.Windows)}
	p.Windows = nil
}

// endWatch fills in the Detail of a run's report.
func endWatch(f *formRun) {
	if d := detailOf(f.seen, f.reconciler.Windows); d != nil {
		if planned := f.report.Detail; planned != nil {
			d.Plan, d.Windows = planned.Plan, planned.Windows
		}
		f.report.Detail = d
	}
}

// detailOf returns what was seen of a form, nil if nobody watched.
func detailOf(seen *detail.Observer, windows []*reading.Window) *Detail {
	if seen == nil {
		return nil
	}
	return &Detail{Form: seen.End(windows)}
}
