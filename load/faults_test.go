package load_test

import (
	"context"
	"errors"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// unreliable is a destination of which one call fails, whatever it is: the
// n-th, counted from 0.
type unreliable struct{ faulty }

func (u *unreliable) Check(ctx context.Context, p load.Prepared) error {
	return u.do(func() error { return u.Destination.Check(ctx, p) })
}

func (u *unreliable) Get(ctx context.Context, name string) (data []byte, version string, err error) {
	err = u.do(func() error {
		data, version, err = u.Destination.Get(ctx, name)
		return err
	})
	return data, version, err
}

func (u *unreliable) List(ctx context.Context, prefix string) (objects []load.Object, err error) {
	err = u.do(func() error {
		objects, err = u.Destination.List(ctx, prefix)
		return err
	})
	return objects, err
}

func (u *unreliable) Staged(ctx context.Context) (left []load.Leftover, err error) {
	err = u.do(func() error {
		left, err = u.Destination.Staged(ctx)
		return err
	})
	return left, err
}

func (u *unreliable) Holders(ctx context.Context) (held []load.ScopedHolder, err error) {
	err = u.do(func() error {
		held, err = u.Destination.Holders(ctx)
		return err
	})
	return held, err
}

// TestRecoverWhereReadingFails: a commit that is recorded is finished or taken
// back, though each call in turn fails, reading ones too: an answer that does
// not come is not taken for the answer that something is gone.
func TestRecoverWhereReadingFails(t *testing.T) {
	for name, c := range map[string]struct {
		step load.Step
		n    int // of the step
		gone bool
		want load.Recovery
		run  string
		days days
	}{
		"nothing is visible":        {load.StepParts, 1, false, load.Recovery{RunID: "run2", Finished: true}, "run2", days{1: "x", 2: "y"}},
		"a part is visible":         {load.StepParts, 2, false, load.Recovery{RunID: "run2", Finished: true}, "run2", days{1: "x", 2: "y"}},
		"the manifest is written":   {load.StepSupersede, 1, false, load.Recovery{RunID: "run2", Finished: true}, "run2", days{1: "x", 2: "y"}},
		"a staged part is gone":     {load.StepParts, 1, true, load.Recovery{RunID: "run2"}, "run1", days{1: "a"}},
		"it is, and one is visible": {load.StepParts, 2, true, load.Recovery{RunID: "run2"}, "run1", days{1: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for n, hit := 0, true; hit; n++ {
				s := newShop(t)
				s.must(s.run("run1", days{1: "a"}, nil))
				commit, _, err := s.change("run2", days{1: "x", 2: "y"})
				s.must(err)
				commit.Hook = killBefore(c.step, c.n)
				if err := commit.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				if c.gone {
					s.must(s.d.Abort(t.Context(), commit.New[1]))
				}
				u := &unreliable{faulty{Destination: s.d, n: n}}
				first, err := load.Recover(t.Context(), u, "", nil, false)
				// A part that is gone is reason enough, whatever the calls beside it say.
				if hit = u.hit; hit && err == nil && (!c.gone || first != c.want) {
					t.Errorf("call %d failed, and the recovery is %+v", n, first)
				}
				if !hit && (err != nil || first != c.want) {
					t.Errorf("%+v, %v", first, err)
				}
				again, err := load.Recover(t.Context(), s.d, "", nil, false)
				if err != nil || again.RunID != "" && again != c.want {
					t.Errorf("after call %d failed: %+v, %v", n, again, err)
				}
				s.clean("") // what was beside a commit that was taken back
				s.holds(c.run, c.days)
			}
		})
	}
}

// TestCleanWhereCallsFail: each call in turn fails. That is an error, what is
// committed stays whole, and cleaning again leaves nothing else.
func TestCleanWhereCallsFail(t *testing.T) {
	needs.Slow(t)
	for name, leave := range map[string]func(s shop){
		"staged parts": func(s shop) { s.stageTwo("dead") },
		"a recorded commit": func(s shop) {
			hook := killBefore(load.StepParts, 1)
			if err := s.run("dead", days{1: "x"}, hook); !errors.Is(err, errKilled) {
				s.t.Fatal(err)
			}
		},
		"another's recorded commit": func(s shop) {
			hook, _ := killAt(3)
			if err := s.file("dead", "f.csv", "text", hook); !errors.Is(err, errKilled) {
				s.t.Fatal(err)
			}
		},
	} {
		for _, dry := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				for n, hit := 0, true; hit; n++ {
					s := newShop(t)
					s.must(s.run("base", days{1: "a"}, nil))
					leave(s)
					s.leave("other", "left.csv")
					before := s.everything()
					u := &unreliable{faulty{Destination: s.d, n: n}}
					_, err := load.Clean(t.Context(), u, "", cleaner, load.CleanOptions{DryRun: dry})
					if hit = u.hit; hit != (err != nil) {
						t.Errorf("call %d failed: %t, and the error is %v", n, hit, err)
					}
					if dry {
						s.same("what lies there", s.everything(), before)
					}
					s.clean("")
					s.clean("f.csv")
					left, err := s.d.Staged(t.Context())
					s.must(err)
					if control, err := s.d.List(t.Context(), load.ControlFolder+"/"); err != nil || len(left)+len(control) > 0 {
						t.Errorf("call %d failed, and left are %v, %v, %v", n, left, control, err)
					}
					s.must(s.whole(name == "a recorded commit"))
				}
			})
		}
	}
}

// whole tells whether the dataset holds the dead run's results or the ones
// before.
func (s shop) whole(finished bool) error {
	m, _, err := load.ReadManifest(s.t.Context(), s.d, load.ManifestName)
	if err != nil {
		return err
	}
	if finished != (m.RunID == "dead") {
		return errors.New("the dataset is of run " + m.RunID)
	}
	_, _, err = s.d.Get(s.t.Context(), m.Parts[0].Path)
	return err
}
