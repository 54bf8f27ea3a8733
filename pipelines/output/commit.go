package output

import (
	"context"
	"slices"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/reconcile"
	"golang.org/x/sync/errgroup"
)

// Commit stages every output, records the commits of all, and then publishes
// them, each step side by side. An output that fails does not stop the others:
// the error is an *OutputsError then. recorded is called once a commit stands
// recorded, before any is published.
func (s *Set) Commit(ctx context.Context, snapshot *reconcile.Snapshot, recorded func(context.Context)) error {
	if err := s.LeasesHeld(ctx); err != nil {
		return err
	}
	s.job.At(PointSnapshot)
	if err := s.eachTarget(ctx, func(ctx context.Context, t *target) (err error) {
		t.staged, err = t.out.stage(ctx, snapshot)
		return err
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

// publish records the commits and carries them out. Once one is recorded, what
// was read is of no use to another run.
func (s *Set) publish(ctx context.Context, recorded func(context.Context)) error {
	lingering, cancel := load.Lingering(ctx, commitGrace)
	defer cancel()
	err := s.eachTarget(lingering, func(ctx context.Context, t *target) error {
		commit, err := t.staged.record(ctx)
		if err == nil {
			t.recorded = commit
		}
		return err
	})
	if slices.ContainsFunc(s.targets, func(t *target) bool { return t.recorded != nil }) {
		recorded(context.WithoutCancel(ctx))
	}
	if err != nil {
		return err
	}
	return s.eachTarget(lingering, func(ctx context.Context, t *target) error {
		if err := t.recorded.Publish(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		report := t.staged.report
		report.Path, report.Format, report.Explode = t.report.Path, t.report.Format, t.report.Explode
		t.report, t.committed = report, true
		return nil
	})
}

// eachTarget does something with all live outputs side by side, and sets those
// aside that fail.
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
	_ = group.Wait() // the failures are kept apart
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

// outcome is the error of a run that has committed what it could.
func (s *Set) outcome(ctx context.Context) error {
	for _, t := range s.committed() {
		t.report.Warnings = s.tellWarnings(ctx, t)
		s.tellDamaged(ctx, t)
	}
	return s.failures()
}

// tellDamaged notes parts of a committed dataset that are not as its manifest
// says and that this run did not replace: the output's run fails for them.
func (s *Set) tellDamaged(ctx context.Context, t *target) {
	d, ok := t.out.(*dataset)
	if !ok {
		return
	}
	if err := d.damaged(); err != nil {
		_ = s.setAside(ctx, t, err) // the others are committed all the same
	}
}

// failures is an *OutputsError of the outputs that failed, nil if none did.
func (s *Set) failures() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := &OutputsError{}
	for _, t := range s.targets {
		if t.err != nil {
			failed.Errors = append(failed.Errors, t.err)
		}
	}
	if len(failed.Errors) > 0 {
		return failed
	}
	return nil
}
