package maintain

import (
	"slices"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
)

// NextRun says what the next run of a form does with what earlier runs left.
type NextRun struct {
	// UnderWay is the run that writes an output now, nil if there is none. Another run
	// ends at once as long as it does.
	UnderWay *load.Holder
	// Finishes are the commits that are finished before anything else.
	Finishes []Unfinished
	// Resumes is what is taken over of a run that ended early, nil if all is read anew.
	Resumes *Resumption
	// Discards is the id of a run that ended early of which nothing is taken over, and
	// Why says why. Both are "" if there is none.
	Discards, Why string
}

// Unfinished is a commit that a run recorded and did not finish.
type Unfinished struct{ Path, RunID string }

// Resumption is what a run takes over of one that ended early.
type Resumption struct {
	RunID          string
	Results        int64
	Oldest, Newest time.Time // when the results were read
}

// nextRun says what the next run of a form does, by the same rules as the run.
func nextRun(def *definition.Definition, o account.Options, f *FormState, left []checkpoint.Left) (will NextRun) {
	next := checkpoint.Next{At: o.Now(), Full: o.Full}
	var manifests []*load.Manifest
	for _, at := range f.Outputs {
		if at.Err != nil {
			return NextRun{} // the next run may fail as well
		}
		if at.Holder != nil && will.UnderWay == nil {
			will.UnderWay = at.Holder
		}
		base := checkpoint.Base{Path: at.Path, Version: at.version}
		if at.Manifest != nil {
			base.RunID = at.Manifest.RunID
		}
		if at.Pending != "" { // the commit is finished first, and changes the manifest
			will.Finishes = append(will.Finishes, Unfinished{at.Path, at.Pending})
			base = checkpoint.Base{Path: at.Path, Version: "finished", RunID: at.Pending}
		}
		if at.Dataset {
			manifests = append(manifests, at.Manifest)
		}
		if !at.PerRun {
			next.Bases = append(next.Bases, base)
		}
	}
	i := slices.IndexFunc(left, func(l checkpoint.Left) bool { return l.Form == f.Form && l.Inherited() != nil })
	if i < 0 {
		return will
	}
	found := left[i].Inherited()
	if !def.LacksKeys() {
		next.Fingerprint, _ = def.Fingerprint() // an error of it is one of the next run
	}
	if err := found.Unfit(next); err != nil {
		will.Discards, will.Why = found.RunID, err.Error()
		return will
	}
	will.Resumes = resumption(def, o, found, manifests)
	return will
}

// resumption tells what a run takes over of a checkpoint, nil if that is nothing.
func resumption(def *definition.Definition, o account.Options, found *checkpoint.Inherited, manifests []*load.Manifest) *Resumption {
	found.Usable(o.Now(), 0, func(at time.Time) time.Time { return interval.Settled(def, at) })
	asked, err := interval.Ask(def, o.Flags(), o.Now())
	if err != nil {
		return nil
	}
	r := &Resumption{RunID: found.RunID}
	for _, c := range found.Within(asked.Decide(def, o.Flags(), manifests, found.Oldest()).Read) {
		for _, p := range c.Pieces {
			if p.Results() == 0 {
				continue
			}
			r.Results += p.Results()
			if r.Oldest.IsZero() || p.ReadAt.Before(r.Oldest) {
				r.Oldest = p.ReadAt
			}
			if p.ReadAt.After(r.Newest) {
				r.Newest = p.ReadAt
			}
		}
	}
	if r.Results == 0 {
		return nil
	}
	return r
}
