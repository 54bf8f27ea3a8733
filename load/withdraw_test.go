package load_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		return &load.Error{Kind: load.ErrFailed, Op: "commit", Path: p.Name, Remedy: "ask", Err: errors.New("refused")}
	}
	return r.Destination.Commit(ctx, p)
}

func (r refusing) Delete(ctx context.Context, name string) error {
	if _, err := load.ParsePartName(name); err == nil && r.remove {
		return &load.Error{Kind: load.ErrFailed, Op: "remove", Path: name, Remedy: "ask", Err: errors.New("refused")}
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
			if data, _, err := s.d.Get(t.Context(), load.SuccessName); c.want.Finished && (err != nil || !strings.Contains(string(data), c.run)) {
				t.Errorf("the mark of success is %q, %v", data, err)
			}
			s.must(s.run("run3", days{1: "x", 2: "y", 3: "z"}, nil))
		})
	}
}

// TestWithdrawFile: a file's commit that is refused its dead letters for good has replaced the
// file. So it stays, with its manifest, and not beside the one of the file before.
func TestWithdrawFile(t *testing.T) {
	s := newShop(t)
	s.must(s.runFile("run1", "a", nil))
	s.must(os.MkdirAll(filepath.Join(s.d.String(), load.FileRejectsName(fileName), "full"), 0o750))
	if err := s.runFile("run2", "a reject", nil); err == nil {
		t.Fatal("the commit is finished")
	}
	got, err := load.Recover(t.Context(), s.d, fileName, nil, true)
	if err != nil || got != (load.Recovery{RunID: "run2", Finished: true}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	m, _, err := load.ReadManifest(t.Context(), s.d, load.FileManifestName(fileName))
	if err != nil || m.RunID != "run2" {
		t.Errorf("the manifest is of %q, %v", m.RunID, err)
	}
	if slices.Contains(s.names(), load.SuccessName) {
		t.Error("the mark of a dataset lies beside the file")
	}
}

// TestTakenBackFileWasReplaced: the manifest of before does not come back beside a file that it
// does not describe, and dead letters go.
func TestTakenBackFileWasReplaced(t *testing.T) {
	s := newShop(t)
	s.must(s.runFile("run1", "a", nil))
	if err := s.runFile("run2", "a reject", killBefore(load.StepManifest, 1)); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	s.must(os.WriteFile(filepath.Join(s.d.String(), fileName), []byte("someone's"), 0o600))
	got, err := load.Recover(t.Context(), s.d, fileName, nil, false)
	if err != nil || got != (load.Recovery{RunID: "run2"}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, name := range []string{load.FileManifestName(fileName), load.FileRejectsName(fileName)} {
		if _, _, err := s.d.Get(t.Context(), name); !errors.Is(err, load.ErrNotExist) {
			t.Errorf("%s lies beside the file, %v", name, err)
		}
	}
}

// TestWithdrawBesideDamagedManifest: a recorded commit does not keep --full from a dataset whose
// manifest was damaged meanwhile.
func TestWithdrawBesideDamagedManifest(t *testing.T) {
	s := newShop(t)
	s.must(s.run("run1", days{1: "a"}, nil))
	commit, _, err := s.change("run2", days{1: "x"})
	s.must(err)
	commit.Hook = killBefore(load.StepManifest, 1)
	if err := commit.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	s.must(s.d.Put(t.Context(), load.ManifestName, []byte("{"), load.AnyVersion))
	if _, err := load.Recover(t.Context(), s.d, "", nil, false); err == nil {
		t.Fatal("the commit is finished")
	}
	if got, err := load.Recover(t.Context(), s.d, "", nil, true); err != nil || got != (load.Recovery{RunID: "run2"}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if run, err := load.Pending(t.Context(), s.d, ""); run != "" || err != nil {
		t.Errorf("the commit of %q is recorded, %v", run, err)
	}
}
