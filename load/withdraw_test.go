package load_test

import (
	"context"
	"errors"
	"testing"

	"github.com/formetl/formetl/load"
)

// refusing is a destination that refuses one kind of call for good.
type refusing struct {
	load.Destination
	commit, remove bool
}

func (r refusing) Commit(ctx context.Context, p load.Prepared) error {
	if r.commit && r.Check(ctx, p) == nil {
		return &load.IOError{Op: "commit", Path: p.Name, Hint: "ask", Err: errors.New("refused")}
	}
	return r.Destination.Commit(ctx, p)
}

func (r refusing) Delete(ctx context.Context, name string) error {
	if _, err := load.ParsePartName(name); err == nil && r.remove {
		return &load.IOError{Op: "remove", Path: name, Hint: "ask", Err: errors.New("refused")}
	}
	return r.Destination.Delete(ctx, name)
}

// TestWithdraw: a recorded commit that the destination refuses for good blocks no run --full and
// no clean: before its manifest is written it is undone, after that it stays without its last steps.
func TestWithdraw(t *testing.T) {
	for name, c := range map[string]struct {
		at     load.Step
		refuse refusing
		want   load.Recovery
		run    string
	}{
		"its parts":               {load.StepParts, refusing{commit: true}, load.Recovery{RunID: "run2"}, "run1"},
		"removing what was there": {load.StepSupersede, refusing{remove: true}, load.Recovery{RunID: "run2", Finished: true}, "run2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.must(s.run("run1", days{1: "a"}, nil))
			commit, _, err := s.change("run2", days{1: "x", 2: "y"})
			s.must(err)
			commit.Hook = killBefore(c.at, 1)
			if err := commit.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			c.refuse.Destination = s.d
			for range 2 { // it does not pass
				if _, err := load.Recover(t.Context(), c.refuse, "", nil, false); err == nil {
					t.Fatal("the commit is finished")
				}
			}
			got, err := load.Recover(t.Context(), c.refuse, "", nil, true)
			if err != nil || got != c.want {
				t.Fatalf("got %+v, %v", got, err)
			}
			if run, err := load.Pending(t.Context(), s.d, ""); run != "" || err != nil {
				t.Errorf("the commit of %q is recorded, %v", run, err)
			}
			m, _, err := load.ReadManifest(t.Context(), s.d, load.ManifestName)
			if err != nil || m.RunID != c.run {
				t.Errorf("the manifest is of %q, %v", m.RunID, err)
			}
			s.must(s.run("run3", days{1: "x", 2: "y", 3: "z"}, nil))
		})
	}
}
