package s3

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

var errKilled = errors.New("killed")

// datasetRun stages a part for each day and describes the commit, as a run
// does that replaces what the dataset holds.
func datasetRun(t *testing.T, d *Destination, run string, content map[int]string) load.DatasetCommit {
	t.Helper()
	base, version, err := load.ReadManifest(t.Context(), d, load.ManifestName)
	if err != nil && !errors.Is(err, load.ErrNotExist) {
		t.Fatal(err)
	}
	c := load.DatasetCommit{RunID: run, Base: version, Manifest: load.Manifest{
		Format: "csv", Pipeline: "p", Form: "f", RunID: run, CreatedAt: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		Schema: []load.Column{{Name: "id", Type: "int64", From: "result_id"}},
	}}
	generation := 1
	if base != nil {
		generation = load.NextGeneration(base.Parts)
		for _, p := range base.Parts {
			c.Superseded = append(c.Superseded, p.Path)
		}
	}
	for day := 1; day <= 31; day++ {
		text, ok := content[day]
		if !ok {
			continue
		}
		from := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
		to := from.AddDate(0, 0, 1)
		name := load.PartName(load.PartKey{DT: load.DTValue("day", to), From: from, To: to, Generation: generation, Extension: ".csv"})
		p := stage(t, d, name, []byte(text))
		rows := int64(len(text))
		c.New = append(c.New, p)
		c.Manifest.Rows += rows
		c.Manifest.Parts = append(c.Manifest.Parts, load.Part{
			Path: name, From: load.Wall(from), To: load.Wall(to), Rows: rows, MinID: 1, MaxID: rows, Bytes: p.Bytes, SHA256: p.SHA256,
		})
	}
	return c
}

// A commit that is killed before any of its actions is finished by the next
// run, or leaves the dataset as it was; nothing else is left in the bucket.
func TestCommitKilledAtEveryStep(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		for n, killed := 0, true; killed; n++ {
			prefix := fmt.Sprintf("killed/%d", n)
			d := s.open(t, prefix)
			if err := datasetRun(t, d, "run1", map[int]string{1: "a", 2: "b"}).Do(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			c := datasetRun(t, d, "run2", map[int]string{1: "x", 3: "yy"})
			killed = false
			calls := 0
			c.Hook = func(load.Step) error {
				if calls++; calls == n+1 {
					killed = true
					return errKilled
				}
				return nil
			}
			if err := c.Do(t.Context(), d); killed != errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			after := s.open(t, prefix)
			r, err := load.Recover(context.Background(), after, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			want, parts := "run1", []string{"a", "b"}
			if r.Finished || !killed {
				want, parts = "run2", []string{"x", "yy"}
			} else {
				for _, p := range c.New {
					if err := after.Abort(t.Context(), p); err != nil {
						t.Fatal(err)
					}
				}
			}
			holds(t, after, want, parts)
		}
	})
}

// holds checks that a dataset is whole with run and that nothing else is there.
func holds(t *testing.T, d *Destination, run string, parts []string) {
	t.Helper()
	m, _, err := load.ReadManifest(t.Context(), d, load.ManifestName)
	if err != nil || m.RunID != run {
		t.Fatalf("%s: the manifest is of run %v, %v, want %s", d, m, err, run)
	}
	mark, _, err := d.Get(t.Context(), load.SuccessName)
	// A second line may name a run that was taken back.
	if first, _, _ := strings.Cut(string(mark), "\n"); err != nil || first != run {
		t.Errorf("%s: %s holds %q, %v", d, load.SuccessName, mark, err)
	}
	want := append(make([]string, 0, 2+len(m.Parts)), load.SuccessName, load.ManifestName)
	got := make([]string, 0, len(m.Parts))
	for _, p := range m.Parts {
		data, _, err := d.Get(t.Context(), p.Path)
		if err != nil {
			t.Fatal(err)
		}
		got, want = append(got, string(data)), append(want, p.Path)
	}
	slices.Sort(want)
	if !slices.Equal(got, parts) {
		t.Errorf("%s holds %v, want %v", d, got, parts)
	}
	if all := names(t, d); !slices.Equal(all, want) {
		t.Errorf("%s: the bucket holds %v, want %v", d, all, want)
	}
}

// A lifecycle rule took the uploads away before the commit was done.
func TestUploadsGoneBeforeRecovery(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		d := s.open(t, "lifecycle")
		if err := datasetRun(t, d, "run1", map[int]string{1: "a"}).Do(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		c := datasetRun(t, d, "run2", map[int]string{1: "x", 2: "y"})
		c.Hook = func(step load.Step) error {
			if step == load.StepParts {
				return errKilled
			}
			return nil
		}
		if err := c.Do(t.Context(), d); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		for _, p := range c.New {
			if err := d.Abort(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		r, err := load.Recover(t.Context(), d, "", nil)
		if err != nil || r != (load.Recovery{RunID: "run2"}) {
			t.Fatalf("%+v, %v", r, err)
		}
		holds(t, d, "run1", []string{"a"})
	})
}
