package loadtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
)

func idsCases() []destinationCase {
	return []destinationCase{
		{"each part of a dataset has its id set and dead letters", idsOfParts},
		{"parts of equal content share them", idsShared},
		{"id sets and dead letters are listed, and are no data", idsListed},
		{"whatever kills a commit, each part has its id set and dead letters", idsKilled},
		{"a commit that is taken back leaves neither", idsTakenBack},
		{"a commit that loses the manifest leaves neither", idsLostSwap},
		{"a commit that meets another's record leaves that one's", idsLostIntent},
		{"those of a recorded commit are no leftovers", idsRecorded},
		{"a watermark is set back and nothing else", watermarkReset},
		{"a watermark is not set back over a recorded commit", watermarkRecorded},
	}
}

// days is the content of a dataset: the text of each part by the number of its
// day.
type days map[int]string

var errKilled = errors.New("killed")

// replace stages a commit that replaces the whole dataset. A part with
// unchanged content keeps its name.
func (b *bench) replace(run string, content days) load.DatasetCommit {
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
			DT: load.DTValue("day", to), From: from, To: to, Generation: load.NextGeneration(old), Extension: ".csv",
		}), content[day])
		fresh = append(fresh, load.PreparedPart{Prepared: p, Part: load.Part{
			Path: p.Name, From: load.Wall(from), To: load.Wall(to), Rows: 1, MinID: int64(day), MaxID: int64(day), Bytes: p.Bytes, SHA256: p.SHA256, IDs: p.SHA256, Letters: p.SHA256,
		}})
	}
	reuse := load.ReuseParts(old, fresh)
	c := load.DatasetCommit{RunID: run, Base: version, New: reuse.New, Unused: reuse.Duplicates, Superseded: reuse.Superseded, Manifest: load.Manifest{
		Format: "csv", Pipeline: "feedback", Form: "form1", RunID: run, CreatedAt: time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC),
		Watermark: load.Wall(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)), Parts: reuse.Parts, Rows: int64(len(reuse.Parts)),
	}}
	for _, p := range c.New {
		for _, name := range beside(p.SHA256) {
			c.Beside = append(c.Beside, load.PartObject{Name: name, Encode: func() ([]byte, error) { return []byte(name), nil }})
		}
	}
	for _, p := range old {
		if slices.Contains(c.Superseded, p.Path) {
			c.SupersededBeside = append(c.SupersededBeside, beside(p.SHA256)...)
		}
	}
	return c
}

// beside names the id set and the dead letters of a part with this digest.
func beside(digest string) []string { return []string{load.IDsName(digest), load.RejectsName(digest)} }

// killed does a commit and stops it just before the n-th action of a step,
// counted from 1.
func (b *bench) killed(c load.DatasetCommit, step load.Step, n int) {
	b.Helper()
	c.Hook = func(s load.Step) error {
		if s == step {
			if n--; n == 0 {
				return errKilled
			}
		}
		return nil
	}
	b.wants("the commit", c.Do(b.Context(), b.d), errKilled)
}

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

// sweep calls load.Clean if the destination can be swept.
func (b *bench) sweep() load.Cleaned {
	b.Helper()
	if _, _, ok := b.leases(); !ok {
		return load.Cleaned{}
	}
	told, err := load.Clean(b.Context(), b.place.Open(), "", holder("cleaner"), load.CleanOptions{DryRun: true})
	b.must("look for what can be cleaned", err)
	cleaned, err := load.Clean(b.Context(), b.place.Open(), "", holder("cleaner"), load.CleanOptions{})
	b.must("clean", err)
	if told.Recovery.RunID == "" && !slices.Equal(told.Removed, cleaned.Removed) {
		b.Errorf("clean told %+v and removed %+v", told.Removed, cleaned.Removed)
	}
	return cleaned
}

func idsOfParts(b *bench) {
	for i, content := range []days{
		{1: "a", 2: "b", 3: "c"},
		{1: "a", 2: "new", 3: "c"},
		{1: "a", 2: "new", 3: "c"}, // nothing changed
		{4: "d"},
		{},
	} {
		run := fmt.Sprint("run", i)
		b.must("commit", b.replace(run, content).Do(b.Context(), b.d))
		b.dataset(run, content)
	}
	if cleaned := b.sweep(); len(cleaned.Removed) > 0 {
		b.Errorf("clean removed %+v", cleaned.Removed)
	}
}

func idsShared(b *bench) {
	for i, content := range []days{
		{1: "same", 2: "same", 3: "c"},
		{1: "x", 2: "same"},         // one of them is superseded
		{1: "same", 2: "x"},         // each in the other's place
		{1: "same", 3: "same"},      // one more
		{1: "same", 2: "", 3: ""},   // parts without any bytes
		{1: "y", 2: "", 3: "same!"}, // the last is superseded
	} {
		run := fmt.Sprint("run", i)
		b.must("commit", b.replace(run, content).Do(b.Context(), b.d))
		b.dataset(run, content)
	}
}

func idsListed(b *bench) {
	c := b.replace("run1", days{1: "a", 2: "b"})
	b.must("commit", c.Do(b.Context(), b.d))
	for kind := range 2 { // id sets and dead letters
		want := []string{c.Beside[kind].Name, c.Beside[2+kind].Name}
		slices.Sort(want)
		b.lists(path.Dir(want[0]), want...)
	}
	for _, o := range c.Beside {
		letters := path.Dir(o.Name) == load.RejectsFolder // which people read, by the extension of what they are
		if !strings.HasPrefix(o.Name, "_") || slices.Contains(dataExtensions[:], path.Ext(o.Name)) && !letters {
			b.Errorf("%s is found as data", o.Name)
		}
	}
	if digest := c.New[0].SHA256; load.IDsName(digest) != "_ids/"+digest+".roaring" {
		b.Errorf("the id set of %s is %s", digest, load.IDsName(digest))
	}
}

// idsKilled kills a commit before each of its actions. Then it is recovered, or
// another commit follows. After Clean the place must hold exactly what the last
// commit says.
func idsKilled(b *bench) {
	if _, _, ok := b.leases(); !ok {
		return // without a Sweeper nothing removes the sets of an unrecorded commit
	}
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
		r, err := load.Recover(b.Context(), b.place.Open(), "", nil)
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

func idsTakenBack(b *bench) {
	b.must("commit", b.replace("base", days{1: "kept", 2: "equal", 3: "c"}).Do(b.Context(), b.d))
	for visible := range 3 {
		// Day 4 has the content that day 2 had, so an older part uses the same
		// id set.
		c := b.replace("next", days{1: "kept", 3: "new", 4: "equal", 5: "e"})
		b.killed(c, load.StepParts, visible+1)
		b.must("abort", b.d.Abort(b.Context(), c.New[2]))
		r, err := load.Recover(b.Context(), b.place.Open(), "", nil)
		b.must("recover", err)
		if r != (load.Recovery{RunID: "next"}) {
			b.Fatalf("the recovery is %+v", r)
		}
		b.dataset("base", days{1: "kept", 2: "equal", 3: "c"})
	}
}

// at gives a hook that calls do before a step of a commit.
func at(step load.Step, do func() error) load.Hook {
	return func(s load.Step) error {
		if s != step {
			return nil
		}
		return do()
	}
}

func idsLostSwap(b *bench) {
	b.must("commit", b.replace("base", days{1: "kept", 2: "equal"}).Do(b.Context(), b.d))
	c := b.replace("loser", days{1: "kept", 3: "new", 4: "equal"})
	c.Hook = at(load.StepManifest, func() error {
		m, version, err := load.ReadManifest(b.Context(), b.d, load.ManifestName)
		b.must("read the manifest", err)
		m.RunID = "winner"
		data, err := m.Encode()
		b.must("encode", err)
		return b.d.Put(b.Context(), load.ManifestName, data, version)
	})
	b.wants("the commit", c.Do(b.Context(), b.d), load.ErrConflict)
	b.dataset("winner", days{1: "kept", 2: "equal"})
}

func idsLostIntent(b *bench) {
	b.must("commit", b.replace("base", days{1: "kept"}).Do(b.Context(), b.d))
	c, other := b.replace("loser", days{1: "kept", 2: "equal", 3: "lost"}), b.replace("winner", days{1: "kept", 4: "equal"})
	c.Hook = at(load.StepIntent, func() error {
		b.killed(other, load.StepUnmark, 1)
		return nil
	})
	b.wants("the commit", c.Do(b.Context(), b.d), load.ErrConflict)
	_, err := load.Recover(b.Context(), b.place.Open(), "", nil)
	b.must("recover", err)
	b.dataset("winner", days{1: "kept", 4: "equal"})
}

func idsRecorded(b *bench) {
	if _, _, ok := b.leases(); !ok {
		return
	}
	b.must("commit", b.replace("base", days{1: "a", 2: "b"}).Do(b.Context(), b.d))
	for i, step := range []load.Step{load.StepUnmark, load.StepManifest, load.StepSupersede, load.StepMark} {
		content := days{1: "a", 2: fmt.Sprint("new", i)}
		b.killed(b.replace("next", content), step, 1)
		told, err := load.Clean(b.Context(), b.place.Open(), "", holder("cleaner"), load.CleanOptions{DryRun: true})
		b.must("look for what can be cleaned", err)
		cleaned := b.sweep()
		orphan := func(l load.Leftover) bool { return l.Kind == load.OrphanedIDs || l.Kind == load.OrphanedLetters }
		if told.Recovery.RunID != "next" || !cleaned.Recovery.Finished || slices.ContainsFunc(slices.Concat(told.Removed, cleaned.Removed), orphan) {
			b.Errorf("before %s: told %+v, did %+v", step, told, cleaned)
		}
		b.dataset("next", content)
	}
}

func watermarkReset(b *bench) {
	_, err := load.ResetWatermark(b.Context(), b.d, load.WallTime{})
	b.wants("reset without a manifest", err, load.ErrNotExist)
	b.must("commit", b.replace("run1", days{1: "a", 2: "b"}).Do(b.Context(), b.d))
	data, _, err := b.d.Get(b.Context(), load.ManifestName)
	b.must("get", err)
	february := load.Wall(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	january := load.Wall(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, c := range []struct {
		to, before load.WallTime
		value      string // in the manifest
		refused    bool
	}{
		{to: load.Wall(february.Add(time.Second)), before: february, value: `"2026-02-01 00:00:00"`, refused: true},
		{to: february, before: february, value: `"2026-02-01 00:00:00"`},
		{to: january, before: february, value: `"2026-01-02 03:04:05"`},
		{to: february, before: january, value: `"2026-01-02 03:04:05"`, refused: true},
		{before: january, value: "null"},
		{value: "null"},
		{to: january, value: "null", refused: true},
	} {
		before, err := load.ResetWatermark(b.Context(), b.place.Open(), c.to)
		var later *load.WatermarkError
		if errors.As(err, &later) != c.refused || !c.refused && err != nil || before != c.before {
			b.Fatalf("reset to %s gives %s, %v; want %s, refused: %t", c.to, before, err, c.before, c.refused)
		}
		want := strings.Replace(string(data), `"watermark": "2026-02-01 00:00:00"`, `"watermark": `+c.value, 1)
		b.holds(load.ManifestName, want)
		b.dataset("run1", days{1: "a", 2: "b"})
	}
	c := b.replace("run2", days{1: "a"})
	b.must("a run after the reset", c.Do(b.Context(), b.d))
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	_, err = load.ResetWatermark(ctx, b.d, load.WallTime{})
	b.wants("reset", err, context.Canceled)
}

func watermarkRecorded(b *bench) {
	b.must("commit", b.replace("base", days{1: "a"}).Do(b.Context(), b.d))
	b.killed(b.replace("next", days{1: "b"}), load.StepSupersede, 1)
	_, err := load.ResetWatermark(b.Context(), b.d, load.WallTime{})
	b.wants("reset while a commit is recorded", err, load.ErrConflict)
	_, err = load.Recover(b.Context(), b.d, "", nil)
	b.must("recover", err)
	_, err = load.ResetWatermark(b.Context(), b.d, load.WallTime{})
	b.must("reset", err)
	b.dataset("next", days{1: "b"})
}
