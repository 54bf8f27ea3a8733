package loadtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/formetl/formetl/load"
)

// days is the content of a dataset: the text of each part by the number of its
// day.
type days map[int]string

var errKilled = errors.New("killed")

// replace stages a commit that replaces the whole dataset. A part with
// unchanged content keeps its name.
func (b *bench) replace(run string, content days) load.Commit {
	b.Helper()
	base, version, err := load.ReadManifest(b.Context(), b.d, load.ManifestName)
	var old []load.Part
	if !errors.Is(err, load.ErrNotExist) {
		b.must("read the manifest", err)
		old = base.Parts
	}
	fresh := make([]load.PreparedPart, 0, len(content))
	for _, day := range slices.Sorted(maps.Keys(content)) {
		from := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
		to := from.AddDate(0, 0, 1)
		p := b.prepare(load.PartName(load.PartKey{
			DT: load.DTValue("day", to), From: from, To: to, Generation: load.NextGeneration(base, nil), Extension: ".csv",
		}), content[day])
		fresh = append(fresh, load.PreparedPart{Prepared: p, Part: load.Part{
			Path: p.Name, From: load.Wall(from), To: load.Wall(to), Rows: 1, MinID: int64(day), MaxID: int64(day), Bytes: p.Bytes, SHA256: p.SHA256, IDs: p.SHA256, Letters: p.SHA256,
		}})
	}
	reuse := load.ReuseParts(old, fresh)
	c := load.Commit{RunID: run, Base: version, New: reuse.New, Manifest: load.Manifest{
		Format: "csv", Pipeline: "feedback", Form: "form1", RunID: run, CreatedAt: time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC),
		Watermark: load.Wall(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)), Parts: reuse.Parts, Rows: int64(len(reuse.Parts)),
	}}
	for _, p := range c.New {
		for _, name := range beside(p.SHA256) {
			c.Beside = append(c.Beside, load.PartObject{Name: name, Encode: func() ([]byte, error) { return []byte(name), nil }})
		}
	}
	b.must("abort the duplicates", load.AbortAll(b.Context(), b.d, reuse.Duplicates...))
	return c
}

// beside names the id set and the dead letters of a part with this digest.
func beside(digest string) []string { return []string{load.IDsName(digest), load.RejectsName(digest)} }

// dataset checks that the place holds the dataset of that run with an id set and
// dead letters for each part, and nothing else.
func (b *bench) dataset(run string, content days) {
	b.Helper()
	d := b.place.Open()
	m, _, err := load.ReadManifest(b.Context(), d, load.ManifestName)
	b.must("read the manifest", err)
	if m.RunID != run || len(m.Parts) != len(content) {
		b.Fatalf("the manifest is of run %s and lists %d parts, want %s and %d", m.RunID, len(m.Parts), run, len(content))
	}
	names := append(make([]string, 0, 2+3*len(m.Parts)), load.ManifestName, load.SuccessName)
	for _, p := range m.Parts {
		b.holds(p.Path, content[p.From.Day()])
		names = append(names, p.Path)
		for _, name := range beside(p.SHA256) {
			b.holds(name, name)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	b.clean(slices.Compact(names)...)
}

// sweep calls load.Clean, which must remove what it told.
func (b *bench) sweep() {
	b.Helper()
	told, err := load.Clean(b.Context(), b.place.Open(), "", holder("cleaner"), load.CleanOptions{DryRun: true})
	b.must("look for what can be cleaned", err)
	cleaned, err := load.Clean(b.Context(), b.place.Open(), "", holder("cleaner"), load.CleanOptions{})
	b.must("clean", err)
	if told.Recovery.RunID == "" && !slices.Equal(told.Removed, cleaned.Removed) {
		b.Errorf("clean told %+v and removed %+v", told.Removed, cleaned.Removed)
	}
}

// idsKilled kills a commit before each of its actions. Then it is recovered, or
// another commit follows. After Clean the place must hold exactly what the last
// commit says.
func idsKilled(b *bench) {
	for n, killed := 1, true; killed; n++ {
		base := days{1: "kept", 2: fmt.Sprint("old", n), 3: "equal"}
		b.must("commit", b.replace("base", base).Do(b.Context(), b.d))
		next := days{1: "kept", 2: fmt.Sprint("new", n), 4: "equal"}
		c := b.replace("next", next)
		calls := 0
		c.Hook = func(load.Step) error {
			if calls++; calls == n {
				return errKilled
			}
			return nil
		}
		err := c.Do(b.Context(), b.d)
		if killed = errors.Is(err, errKilled); !killed {
			b.must("commit", err)
		}
		r, err := load.Recover(b.Context(), b.place.Open(), "", nil, false)
		b.must("recover", err)
		switch left := r.RunID == "" && killed; {
		case left && n%2 == 0:
			b.sweep()
			b.dataset("base", base)
			continue
		case left: // the next run commits the same
			b.must("commit again", b.replace("next", next).Do(b.Context(), b.d))
			b.sweep()
		}
		b.dataset("next", next)
	}
}
