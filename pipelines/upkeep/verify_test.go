package upkeep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/definition"
)

// damagedSet is a dataset of three days, each with ten results, to be damaged.
type damagedSet struct {
	*testing.T
	load.Destination
	commit load.Commit // of the run that wrote it
}

// newDamagedSet writes the dataset. rows is how many rows each part has for its ten results.
func newDamagedSet(t *testing.T, rows int64) *damagedSet {
	t.Helper()
	dest, err := local.New(t.TempDir())
	p := &damagedSet{T: t, Destination: dest}
	p.must(err)
	p.commit = load.Commit{RunID: "run1", Manifest: load.Manifest{
		Format: "csv", Pipeline: "feedback", Form: "form1", RunID: "run1", Schema: []load.Column{{Name: "id", Type: "int64", From: "result_id"}},
	}}
	for day := range 3 {
		p.part(time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC), int64(day*10), rows)
	}
	p.must(p.commit.Do(t.Context(), dest))
	return p
}

// part stages a part of a day, with the ten results from an id on.
func (p *damagedSet) part(from time.Time, id int64, rows int64) {
	p.Helper()
	to := from.AddDate(0, 0, 1)
	upload, err := p.Stage(p.Context(), "run1", load.PartName(load.PartKey{From: from, To: to, Extension: ".csv"}))
	p.must(err)
	_, err = upload.Write([]byte("the rows of " + from.String()))
	p.must(err)
	prepared, err := upload.Prepare(p.Context())
	p.must(err)
	var set idset.Builder
	for n := range int64(10) {
		set.Add(id + n)
	}
	data := idset.Encode(set.Set())
	sum := idset.Sum(data)
	c := &p.commit
	c.New = append(c.New, prepared)
	c.Beside = append(c.Beside, load.PartObject{Name: load.IDsName(sum), Encode: func() ([]byte, error) { return data, nil }})
	c.Manifest.Rows += rows
	c.Manifest.Parts = append(c.Manifest.Parts, load.Part{
		Path: prepared.Name, From: load.Wall(from), To: load.Wall(to), Rows: rows, MinID: id, MaxID: id + 9,
		Bytes: prepared.Bytes, SHA256: prepared.SHA256, IDs: sum,
	})
}

func (p *damagedSet) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// put writes an object whatever lies there.
func (p *damagedSet) put(name, data string) {
	p.Helper()
	p.must(p.Put(p.Context(), name, []byte(data), load.AnyVersion))
}

// remove removes an object that is there.
func (p *damagedSet) remove(name string) {
	p.Helper()
	_, _, err := p.Get(p.Context(), name)
	p.must(errors.Join(err, p.Delete(p.Context(), name)))
}

// manifest writes the manifest anew after a change.
func (p *damagedSet) manifest(change func(m *load.Manifest)) {
	p.Helper()
	change(&p.commit.Manifest)
	data, err := p.commit.Manifest.Encode()
	p.must(err)
	p.put(load.ManifestName, string(data))
}

// first is the first part of the manifest.
func (p *damagedSet) first() *load.Part { return &p.commit.Manifest.Parts[0] }

// TestCheck: each kind of damage is found in the part that has it, and the run that mends it
// is named.
func TestCheck(t *testing.T) {
	const again, anyRun, everything, unlisted = "--from 2026-01-01T00:00:00 --to 2026-01-02T00:00:00", "", full, "--unlisted"
	for _, c := range []struct {
		name   string
		damage func(p *damagedSet)
		kinds  string   // of the problems that are found
		runs   []string // that mend them
	}{
		{"nothing", func(*damagedSet) {}, "", nil},
		{"a part is gone", func(p *damagedSet) { p.remove(p.first().Path) }, "missing", []string{again}},
		{"a part is cut", func(p *damagedSet) { p.put(p.first().Path, "the rows") }, "length", []string{again}},
		{"a part has other bytes", func(p *damagedSet) { p.put(p.first().Path, strings.Repeat("x", int(p.first().Bytes))) }, "sha256", []string{again}},
		{"a set of ids is gone", func(p *damagedSet) { p.remove(load.IDsName(p.first().IDs)) }, "ids", []string{again}},
		{"a set of ids has other bytes", func(p *damagedSet) { p.put(load.IDsName(p.first().IDs), "x") }, "ids", []string{again}},
		{"a part has no set of ids", func(p *damagedSet) { p.manifest(func(*load.Manifest) { p.first().IDs = "" }) }, "ids", []string{again}},
		{"a set of ids is that of another part", func(p *damagedSet) {
			p.manifest(func(m *load.Manifest) { p.first().IDs = m.Parts[1].IDs })
		}, "ids", []string{again}},
		{"a part has fewer rows than ids", func(p *damagedSet) {
			p.manifest(func(m *load.Manifest) { p.first().Rows--; m.Rows-- })
		}, "ids", []string{again}},
		{"a part without rows has no ids", func(p *damagedSet) {
			p.manifest(func(m *load.Manifest) { m.Rows -= p.first().Rows; p.first().Rows, p.first().IDs = 0, "" })
		}, "", nil},
		{"results are in two parts", func(p *damagedSet) {
			p.manifest(func(m *load.Manifest) {
				one, two := p.first(), m.Parts[1]
				one.IDs, one.MinID, one.MaxID = two.IDs, two.MinID, two.MaxID
			})
		}, "twice", []string{"--from 2026-01-02T00:00:00 --to 2026-01-03T00:00:00"}},
		{"dead letters are gone", func(p *damagedSet) {
			p.manifest(func(*load.Manifest) { p.first().Letters = p.first().SHA256 })
		}, "letters", []string{again}},
		{"dead letters have other bytes", func(p *damagedSet) {
			p.manifest(func(*load.Manifest) { p.first().Letters = p.first().SHA256 })
			p.put(load.RejectsName(p.first().Letters), "x")
		}, "letters", []string{again}},
		{"parts that are apart", func(p *damagedSet) {
			p.remove(p.first().Path)
			p.put(p.commit.Manifest.Parts[2].Path, "x")
		}, "missing length", []string{"--from 2026-01-01T00:00:00 --to 2026-01-04T00:00:00"}},
		{"_SUCCESS is gone", func(p *damagedSet) { p.remove(load.SuccessName) }, "manifest", []string{anyRun}},
		{"the manifest is another run's", func(p *damagedSet) {
			p.manifest(func(m *load.Manifest) { m.RunID = "run0" })
		}, "manifest", []string{everything}},
		{"the manifest is gone", func(p *damagedSet) { p.remove(load.ManifestName) }, "manifest", []string{everything}},
		{"the manifest and the parts are gone", func(p *damagedSet) {
			p.remove(load.ManifestName)
			for _, part := range p.commit.Manifest.Parts {
				p.remove(part.Path)
			}
		}, "manifest", []string{anyRun}},
		{"the manifest is damaged", func(p *damagedSet) { p.put(load.ManifestName, "{") }, "manifest", []string{everything}},
		{"the rows of the parts are not those of the manifest", func(p *damagedSet) {
			p.manifest(func(m *load.Manifest) { m.Rows++ })
		}, "manifest", []string{everything}},
		{"a commit was recorded and not finished", func(p *damagedSet) {
			_, version, err := p.Get(p.Context(), load.ManifestName)
			p.must(err)
			next := load.Commit{RunID: "run2", Base: version, Manifest: p.commit.Manifest}
			next.Manifest.RunID = next.RunID
			_, err = next.Record(p.Context(), p.Destination)
			p.must(err)
		}, "manifest", []string{anyRun}},
		{"a part was renamed", func(p *damagedSet) {
			p.put(strings.Replace(p.first().Path, ".csv", ".parquet", 1), "x")
			p.remove(p.first().Path)
		}, "unlisted missing", []string{unlisted, again}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newDamagedSet(t, 10)
			c.damage(p)
			o, err := check(t.Context(), p.Destination, "lake/", "")
			p.must(err)
			o.finish(&definition.Definition{})
			kinds := make([]string, len(o.Problems))
			for i, problem := range o.Problems {
				kinds[i] = problem.Kind
			}
			runs := make([]string, 0, len(c.runs))
			for _, flags := range c.runs {
				command := "run"
				if flags == unlisted {
					command = "clean"
				}
				runs = append(runs, strings.TrimSuffix("formetl "+command+" DEFINITION "+flags, " "))
			}
			if got := strings.Join(kinds, " "); got != c.kinds || !slices.Equal(o.Commands, runs) || o.Sound != (c.kinds == "") {
				t.Errorf("it finds %q, and is mended by %q: %+v", got, o.Commands, o.Problems)
			}
			if c.kinds == "" && (o.Parts != 3 || o.Rows != o.Manifest.Rows) {
				t.Errorf("it tells of %d parts and %d rows", o.Parts, o.Rows)
			}
		})
	}
}

// TestCheckElements: the rows of a list's elements are not as many as their results.
func TestCheckElements(t *testing.T) {
	p := newDamagedSet(t, 25)
	for _, c := range []struct {
		schema []load.Column
		sound  bool
	}{
		{p.commit.Manifest.Schema, false},
		{[]load.Column{{Name: "id", From: "result_id"}, {Name: "position", From: "item:7"}, {Name: "colours", From: "item:7"}}, true},
	} {
		p.manifest(func(m *load.Manifest) { m.Schema = c.schema })
		o, err := check(t.Context(), p.Destination, "lake__colours/", "")
		p.must(err)
		if found := len(o.Problems) == 0; found != c.sound {
			t.Errorf("%v: %+v", c.schema, o.Problems)
		}
	}
}

// committing is a destination at which a run commits while its parts are read.
type committing struct{ *damagedSet }

func (c committing) Get(ctx context.Context, name string) ([]byte, string, error) {
	if name == load.SuccessName {
		c.manifest(func(m *load.Manifest) { m.Pipeline = "another" })
	}
	return c.damagedSet.Get(ctx, name)
}

// TestCheckWhileCommitting: what was found beside a commit is not told.
func TestCheckWhileCommitting(t *testing.T) {
	p := newDamagedSet(t, 10)
	_, err := check(t.Context(), committing{p}, "lake/", "")
	if !errors.Is(err, load.ErrConflict) {
		t.Errorf("it gives %v", err)
	}
}

// TestDamaged: the error counts the problems of all outputs, and sends to the commands.
func TestDamaged(t *testing.T) {
	sound, hurt := &Verified{}, &Verified{Problems: make([]Problem, 2)}
	fault, _ := errors.AsType[*definition.Fault](Damaged([]*Verified{hurt, hurt, sound}))
	if fault == nil || fault.Text != "the outputs are not in order: 4 problems" {
		t.Errorf("%+v", fault)
	}
	hurt.Problems[0].Kind, hurt.Problems[1].Kind = "count", "count"
	if fault, _ = errors.AsType[*definition.Fault](Damaged([]*Verified{hurt})); fault == nil || fault.Text != "the service counts other results than the outputs hold, as results came or went since the last run, or it miscounts: 2 problems" {
		t.Errorf("%+v", fault)
	}
}
