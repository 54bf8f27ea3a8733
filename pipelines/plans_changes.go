package pipelines

import (
	"cmp"
	"context"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// PlannedChanges says how an incremental run would find the results that changed
// since the last one, as far as the manifests tell.
type PlannedChanges struct {
	// Method is load.MethodChanges if the run asks the service what changed. Then it reads only
	// what is new, and the parts that hold changed results. Otherwise Method is
	// load.MethodLookback.
	Method  string        `json:"method"`
	KnownTo load.WallTime `json:"known_to"`         // changes are known up to then, by the service's clock; null: not known
	Reason  string        `json:"reason,omitempty"` // why the lookback is read
}

// following is what a plan knows of the changes that a run would ask for.
type following struct {
	form      reading.Form
	iv        reading.Interval
	manifests []*load.Manifest
	base      load.Changes // what the manifests say together of changes
	known     bool         // the manifests say up to when changes are known, and the run continues them
	now       time.Time
	continues bool // the run reads only what changed
}

// follows says what a run would ask about changes, and how it would find them.
func (p *FormPlan) follows(form reading.Form, i reading.Interval, outputs *output.Set, now time.Time) *following {
	f := &following{form: form, iv: i, manifests: outputs.Manifests(), now: now}
	f.base, f.known = reconcile.KnownChanges(f.manifests)
	base := f.base
	f.known = f.known && i.Continues && countable(outputs)
	if !i.Continues {
		return f
	}
	p.Changes = &PlannedChanges{Method: load.MethodLookback, KnownTo: base.KnownTo}
	why := cmp.Or(feedless(form), form.Uncounted())
	switch {
	case why != "":
		p.Changes.Reason = why
	case !countable(outputs):
		p.Changes.Reason = "no output is a dataset (a folder of parts, or a table), of which single parts can be replaced"
	case reconcile.MostFeedRequests(base, now, true) == 0:
		p.Changes.Reason = base.Reason
	case base.KnownTo.IsZero():
		p.Changes.Reason = "no earlier run asked for changes; this one does"
	case base.Witness == "":
		p.Changes.Reason = "no earlier run could prove that the service sorts by time of change; this one tries again, and reads less if it can"
	default:
		p.Changes.Method, f.continues = load.MethodChanges, true
	}
	return f
}

// makeTail plans a run that reads only what is new and what changed. The plan has no windows
// where they depend on counts and there is no client to ask for these.
func (p *FormPlan) makeTail(ctx context.Context, f *following) (err error) {
	i := f.iv.SinceWatermark(f.form.Def, f.manifests, len(f.base.Later) > 0)
	p.Range = load.Span(i.Read.From, i.Read.To)
	asks, empty := f.form.Client != nil, i.Read.From.Equal(i.Read.To)
	var n int64
	if asks && !empty {
		if n, err = f.form.Counter()(ctx, i.Asked); err != nil {
			return err
		}
	}
	if n > 0 {
		i = f.iv.SinceWatermark(f.form.Def, f.manifests, true)
		p.Range = load.Span(i.Read.From, i.Read.To)
	}
	var plan *extract.Plan
	own := 0 // counts that the run sends itself
	held := reading.ResultsIn(i.Read, f.manifests)
	if asks && (empty || n == 0 && held == 0 && len(f.base.Later) == 0) {
		plan = emptyPlan(f.form, i)
	} else {
		if plan, err = wouldPlan(ctx, f.form, i); plan == nil || err != nil {
			return err
		}
		if asks && !isShort(f.form, i.Read, held+n) {
			own = plan.Requests
		}
	}
	if asks && !empty {
		plan.Requests++
	}
	p.fillFrom(plan)
	p.warn(f.form, plan)
	p.sum(f, plan, int64(own))
	return nil
}

// asked returns how many requests the run sends to ask what changed: feed is the most Get
// Results requests if each list of changes has one page, and counts is how many count requests.
func (f *following) asked(plan *extract.Plan) (feed, counts int64) {
	asks := f.form.Def.Extract.Incremental && len(f.manifests) > 0 || reading.MayMiss(plan) || plan.Requests > 1
	if !asks || f.iv.Unbounded() || feedless(f.form) != "" || f.form.Uncounted() != "" && !reading.MayMiss(plan) {
		return 0, 0
	}
	feed = int64(reconcile.MostFeedRequests(f.base, f.now, f.form.Def.Extract.Incremental))
	if feed > 0 && f.known {
		counts = 1 // over all time of the datasets
	}
	if feed > 0 && !f.continues && reading.MayMiss(plan) {
		feed++ // for what changed while the windows were read
	}
	return feed, counts
}
