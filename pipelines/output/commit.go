package output

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// Commit stages all outputs, then records their commits, then publishes them.
// It does each step for all outputs at once. If some outputs fail, the others
// go on, and the error is an *OutputsError. It calls recorded once a commit is
// recorded, before it publishes any.
func (s *Set) Commit(ctx context.Context, snapshot *reconcile.Snapshot, recorded func(context.Context)) error {
	if err := s.LeasesHeld(ctx); err != nil {
		return err
	}
	s.job.At(PointSnapshot)
	if err := s.eachTarget(ctx, func(ctx context.Context, t *target) (err error) {
		t.staged, err = t.out.stage(ctx, snapshot)
		return t.out.at().named(err)
	}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.publish(ctx, recorded); err != nil {
		return err
	}
	s.writeCodebooks(ctx, snapshot.Schema)
	return s.outcome(ctx)
}

// publish records the commits and carries them out. After the first record, no
// other run may take over what was read.
func (s *Set) publish(ctx context.Context, recorded func(context.Context)) error {
	lingering, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	err := s.eachTarget(lingering, func(ctx context.Context, t *target) error {
		publish, err := t.staged.record(ctx)
		if err == nil {
			t.publish = publish
		}
		return err
	})
	if slices.ContainsFunc(s.targets, func(t *target) bool { return t.publish != nil }) {
		recorded(context.WithoutCancel(ctx))
	}
	if err != nil {
		return err
	}
	return s.eachTarget(lingering, func(ctx context.Context, t *target) error {
		if err := t.publish(ctx); err != nil {
			return t.out.at().named(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		report := t.staged.report
		report.Path, report.Format, report.Explode = t.report.Path, t.report.Format, t.report.Explode
		t.report, t.committed = report, true
		return nil
	})
}

// eachTarget calls do for all live outputs at once. It sets aside those that
// fail, and returns an error only if the run cannot go on.
func (s *Set) eachTarget(ctx context.Context, do func(context.Context, *target) error) error {
	live := s.live()
	failures := make([]error, len(live))
	var group errgroup.Group
	for i, t := range live {
		group.Go(func() error {
			failures[i] = do(ctx, t)
			return nil
		})
	}
	_ = group.Wait() // failures holds the errors
	for i, t := range live {
		if failures[i] == nil {
			continue
		}
		if err := s.setAside(ctx, t, failures[i]); err != nil {
			return err
		}
	}
	return nil
}

// outcome returns the error of a run that has committed what it could: an
// *OutputsError of the failed outputs, or nil. A committed dataset also counts
// as failed if its kept parts do not match its manifest.
func (s *Set) outcome(ctx context.Context) error {
	for _, t := range s.committed() {
		if d, ok := t.out.(*dataset); ok {
			if err := d.damaged(); err != nil {
				_ = s.setAside(ctx, t, err) // the commits of the others stay
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return failures(s.targets)
}

// failures returns an *OutputsError of the outputs that failed, or nil if none did.
func failures(targets []*target) error {
	failed := &OutputsError{}
	for _, t := range targets {
		if t.err != nil {
			failed.Errors = append(failed.Errors, t.err)
		}
	}
	if len(failed.Errors) > 0 {
		return failed
	}
	return nil
}
