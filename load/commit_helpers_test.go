package load_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
)

var errKilled = errors.New("killed")

// days is a dataset's content: a day's number to the text of its part.
type days map[int]string

// shop is a folder with a dataset or a file, and what a run does to it.
type shop struct {
	t testing.TB
	d *local.Destination
}

func newShop(t testing.TB) shop {
	t.Helper()
	d, err := local.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return shop{t: t, d: d}
}

// names lists files, staged ones included, and folders that are empty.
func (s shop) names() []string {
	s.t.Helper()
	root := s.d.String()
	var found []string
	s.must(filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(p, root+string(filepath.Separator)))
		if e.IsDir() {
			if entries, err := os.ReadDir(p); err != nil || len(entries) > 0 {
				return err
			}
			name += "/"
		}
		found = append(found, name)
		return nil
	}))
	slices.Sort(found)
	return found
}

func (s shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func dayWindow(day int) (from, to time.Time) {
	from = time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	return from, from.AddDate(0, 0, 1)
}

// stage makes a part of a day.
func (s shop) stage(run string, generation, day int, text string) (load.PreparedPart, error) {
	from, to := dayWindow(day)
	name := load.PartName(load.PartKey{
		DT: load.DTValue("day", to), From: from, To: to, Generation: generation, Extension: ".csv",
	})
	p, err := s.stageNamed(run, name, text)
	return load.PreparedPart{Prepared: p, Part: load.Part{
		Path: name, From: load.Wall(from), To: load.Wall(to), Rows: int64(len(text)), MinID: 1, MaxID: int64(len(text)),
		Bytes: p.Bytes, SHA256: p.SHA256, IDs: p.SHA256, Letters: p.SHA256,
	}}, err
}

// stageTwo stages the parts of two days, as a run does that dies before its commit.
func (s shop) stageTwo(run string) []load.PreparedPart {
	s.t.Helper()
	var parts []load.PreparedPart
	for day := 1; day <= 2; day++ {
		p, err := s.stage(run, 1, day, "text")
		s.must(err)
		parts = append(parts, p)
	}
	return parts
}

func (s shop) stageNamed(run, name, text string) (load.Prepared, error) {
	u, err := s.d.Stage(context.Background(), run, name)
	if err != nil {
		return load.Prepared{}, err
	}
	defer func() { _ = u.Abort() }()
	if _, err := u.Write([]byte(text)); err != nil {
		return load.Prepared{}, err
	}
	return u.Prepare(context.Background())
}

// change stages what a run does to a dataset: it replaces the days given.
func (s shop) change(run string, content days) (load.Commit, []load.Prepared, error) {
	ctx := context.Background()
	base, version, err := load.ReadManifest(ctx, s.d, load.ManifestName)
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		return load.Commit{}, nil, err
	}
	var old []load.Part
	if base != nil {
		old = base.Parts
	}
	m := manifest(run)
	var replaced []load.Part
	for _, p := range old {
		if _, ok := content[p.From.Day()]; ok {
			replaced = append(replaced, p)
		} else {
			m.Parts = append(m.Parts, p)
		}
	}
	var fresh []load.PreparedPart
	for _, day := range slices.Sorted(maps.Keys(content)) {
		p, err := s.stage(run, load.NextGeneration(base, nil), day, content[day])
		if err != nil {
			return load.Commit{}, nil, err
		}
		fresh = append(fresh, p)
	}
	reuse := load.ReuseParts(replaced, fresh)
	m.Parts = append(m.Parts, reuse.Parts...)
	for _, p := range m.Parts {
		m.Rows += p.Rows
	}
	return load.Commit{
		RunID: run, Manifest: m, Base: version, New: reuse.New, Beside: beside(reuse.New...),
	}, reuse.Duplicates, nil
}

// beside are id sets and dead letters for parts: their content is what tells them apart here.
func beside(prepared ...load.Prepared) []load.PartObject {
	objects := make([]load.PartObject, 0, 2*len(prepared))
	for _, p := range prepared {
		for _, name := range []string{load.IDsName(p.SHA256), load.RejectsName(p.SHA256)} {
			objects = append(objects, load.PartObject{Name: name, Encode: func() ([]byte, error) { return []byte("beside " + p.SHA256), nil }})
		}
	}
	return objects
}

func besideNames(parts []load.Part) []string {
	names := make([]string, 0, 2*len(parts))
	for _, p := range parts {
		names = append(names, load.IDsName(p.SHA256), load.RejectsName(p.SHA256))
	}
	return names
}

func manifest(run string) load.Manifest {
	return load.Manifest{
		Format: "csv", Pipeline: "feedback", Form: "form1", RunID: run,
		CreatedAt: time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC),
		Schema:    []load.Column{{Name: "id", Type: "int64", From: "result_id"}},
	}
}

// run is a whole run: it finishes what is open, and makes its change.
func (s shop) run(run string, content days, hook load.Hook) error {
	ctx := context.Background()
	if _, err := load.Recover(ctx, s.d, "", nil, false); err != nil {
		return err
	}
	c, duplicates, err := s.change(run, content)
	if err != nil {
		return err
	}
	for _, p := range duplicates {
		if err := s.d.Abort(ctx, p); err != nil {
			return err
		}
	}
	c.Hook = hook
	return c.Do(ctx, s.d)
}

// holds checks that the dataset is whole with run, holds the content and
// nothing else.
func (s shop) holds(run string, content days) {
	s.t.Helper()
	m, _, err := load.ReadManifest(s.t.Context(), s.d, load.ManifestName)
	s.must(err)
	if m.RunID != run {
		s.t.Fatalf("the manifest is from run %s, want %s", m.RunID, run)
	}
	mark, _, err := s.d.Get(s.t.Context(), load.SuccessName)
	s.must(err)
	// After a commit that was taken back another line follows.
	if first, _, _ := strings.Cut(string(mark), "\n"); first != run {
		s.t.Fatalf("%s holds %q, want %s", load.SuccessName, mark, run)
	}
	got := days{}
	want := map[string]bool{load.ManifestName: true, load.SuccessName: true}
	for _, p := range m.Parts {
		data, version, err := s.d.Get(s.t.Context(), p.Path)
		s.must(err)
		if p.SHA256 != version {
			s.t.Errorf("%s does not hold what the manifest says", p.Path)
		}
		got[p.From.Day()] = string(data)
		want[p.Path] = true
		for _, name := range besideNames([]load.Part{p}) {
			object, _, err := s.d.Get(s.t.Context(), name)
			if err != nil || string(object) != "beside "+p.SHA256 {
				s.t.Errorf("%s of %s holds %q, %v", name, p.Path, object, err)
			}
			want[name] = true
		}
	}
	if !maps.Equal(got, content) {
		s.t.Errorf("the dataset holds %v, want %v", got, content)
	}
	for _, name := range s.names() {
		if !want[name] {
			s.t.Errorf("%s is left over", name)
		}
	}
}

// killAt gives a hook that kills at its n-th call, counted from 0, and tells
// whether it came to that.
func killAt(n int) (hook load.Hook, killed *load.Step) {
	killed = new(load.Step)
	calls := 0
	return func(step load.Step) error {
		calls++
		if calls == n+1 {
			*killed = step
			return errKilled
		}
		return nil
	}, killed
}

// killBefore gives a hook that kills before the n-th action of a step, counted
// from 1.
func killBefore(step load.Step, n int) load.Hook {
	return func(s load.Step) error {
		if s == step {
			if n--; n == 0 {
				return errKilled
			}
		}
		return nil
	}
}

// faulty is a destination whose n-th changing operation fails, either before
// it had its effect or after.
type faulty struct {
	load.Destination
	n     int
	after bool
	mu    sync.Mutex // operations come side by side
	hit   bool
}

// due tells whether this operation is the one that fails.
func (f *faulty) due() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	f.hit = f.hit || f.n == -1
	return f.n == -1
}

func (f *faulty) do(op func() error) error {
	if !f.due() {
		return op()
	}
	if f.after {
		if err := op(); err != nil {
			return err
		}
	}
	return fmt.Errorf("injected: %w", errKilled)
}

func (f *faulty) Commit(ctx context.Context, p load.Prepared) error {
	return f.do(func() error { return f.Destination.Commit(ctx, p) })
}

func (f *faulty) Abort(ctx context.Context, p load.Prepared) error {
	return f.do(func() error { return f.Destination.Abort(ctx, p) })
}

func (f *faulty) Put(ctx context.Context, name string, data []byte, version string) error {
	return f.do(func() error { return f.Destination.Put(ctx, name, data, version) })
}

func (f *faulty) Delete(ctx context.Context, name string) error {
	return f.do(func() error { return f.Destination.Delete(ctx, name) })
}
