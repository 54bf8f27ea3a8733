package load_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
)

const fileName = "form1.csv"

// changeFile stages what a run does to a single file.
func (s shop) changeFile(run, text string) (load.Commit, error) {
	ctx := context.Background()
	_, version, err := load.ReadManifest(ctx, s.d, load.FileManifestName(fileName))
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		return load.Commit{}, err
	}
	p, err := s.stageNamed(run, fileName, text)
	if err != nil {
		return load.Commit{}, err
	}
	m := manifest(run)
	m.Rows = int64(len(text))
	m.Parts = []load.Part{{Path: fileName, Rows: m.Rows, MinID: 1, MaxID: m.Rows, Bytes: p.Bytes, SHA256: p.SHA256}}
	var letters []byte
	if strings.Contains(text, "reject") {
		letters = []byte("{}\n")
	}
	return load.Commit{RunID: run, File: fileName, Manifest: m, Base: version, New: []load.Prepared{p}, Letters: letters}, nil
}

func (s shop) runFile(run, text string, hook load.Hook) error {
	if _, err := load.Recover(context.Background(), s.d, fileName, nil, false); err != nil {
		return err
	}
	c, err := s.changeFile(run, text)
	if err != nil {
		return err
	}
	c.Hook = hook
	return c.Do(context.Background(), s.d)
}

func (s shop) holdsFile(run, text string) {
	s.t.Helper()
	m, _, err := load.ReadManifest(s.t.Context(), s.d, load.FileManifestName(fileName))
	s.must(err)
	data, version, err := s.d.Get(s.t.Context(), fileName)
	s.must(err)
	if m.RunID != run || string(data) != text || m.Parts[0].SHA256 != version {
		s.t.Fatalf("the file holds %q and its manifest is of %s, want %q of %s", data, m.RunID, text, run)
	}
	want := []string{fileName, load.FileManifestName(fileName)}
	if strings.Contains(text, "reject") {
		want = append(want, load.FileRejectsName(fileName))
	}
	if got := s.names(); !slices.Equal(got, want) {
		s.t.Errorf("the place holds %v, want %v", got, want)
	}
}

func TestFileCommit(t *testing.T) {
	s := newShop(t)
	s.must(s.runFile("run1", "with a reject", nil))
	s.holdsFile("run1", "with a reject")
	s.must(s.runFile("run2", "second", nil))
	s.holdsFile("run2", "second")
	s.must(s.runFile("run3", "second", nil))
	s.holdsFile("run3", "second")
}

// At every kill the file is whole, and a manifest that is there agrees with it.
func TestFileKilledAtEveryStep(t *testing.T) {
	for n := 0; ; n++ {
		s := newShop(t)
		s.must(s.runFile("run1", "first with a reject", nil))
		hook, killed := killAt(n)
		err := s.runFile("run2", "second", hook)
		if *killed == "" {
			s.must(err)
			return
		}
		data, version, err := s.d.Get(t.Context(), fileName)
		s.must(err)
		if text := string(data); text != "first with a reject" && text != "second" {
			t.Fatalf("killed at %s: the file holds %q", *killed, text)
		}
		m, _, err := load.ReadManifest(t.Context(), s.d, load.FileManifestName(fileName))
		if err == nil && m.Parts[0].SHA256 != version {
			t.Fatalf("killed at %s: the manifest does not agree with the file", *killed)
		}
		if *killed == load.StepCheck || *killed == load.StepIntent {
			continue // not recorded: run1 stands, as the checks above saw
		}
		r, err := load.Recover(t.Context(), s.d, fileName, nil, false)
		s.must(err)
		if !r.Finished {
			t.Fatalf("killed at %s: recovery is %+v", *killed, r)
		}
		s.holdsFile("run2", "second")
	}
}

func TestFileFaults(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 0; ; n++ {
			s := newShop(t)
			s.must(s.runFile("run1", "first", nil))
			c, err := s.changeFile("run2", "second")
			s.must(err)
			first := &faulty{Destination: s.d, n: n, after: after}
			if err := c.Do(t.Context(), first); !first.hit {
				s.must(err)
				break
			}
			s.must(s.d.Abort(t.Context(), c.New[0])) // as a careless caller does: recovery copes
			s.must(s.runFile("run3", "truth", nil))
			s.holdsFile("run3", "truth")
		}
	}
}

// The staged file of a recorded commit is gone: the old file gets its
// manifest back.
func TestFileRecoverWithoutStaged(t *testing.T) {
	s := newShop(t)
	s.must(s.runFile("run1", "first", nil))
	c, err := s.changeFile("run2", "second")
	s.must(err)
	c.Hook, _ = killAt(3) // the manifest is removed
	if err := c.Do(t.Context(), s.d); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	s.must(s.d.Abort(t.Context(), c.New[0]))
	r, err := load.Recover(t.Context(), s.d, fileName, nil, false)
	s.must(err)
	if r != (load.Recovery{RunID: "run2"}) {
		t.Errorf("recovery is %+v", r)
	}
	s.holdsFile("run1", "first")
}

func TestFileBaseChanged(t *testing.T) {
	s := newShop(t)
	s.must(s.runFile("run1", "first", nil))
	c, err := s.changeFile("run2", "lost")
	s.must(err)
	s.must(s.runFile("run3", "won", nil))
	wantConflict(t, c.Do(t.Context(), s.d))
	s.must(s.d.Abort(t.Context(), c.New[0]))
	s.holdsFile("run3", "won")
}
