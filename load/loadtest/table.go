package loadtest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/tablerun"
)

// TablePlace is where a test's table lies: in an empty schema of a database.
type TablePlace struct {
	// Open returns a new Destination at the table, as another process would have.
	Open func() load.Destination
	// Format encodes the rows that the destination takes.
	Format load.Format
	// Name is the table as SQL names it. Own is the beginning of the names of formetl's own
	// tables there.
	Name, Own string
	// Query runs a statement past the destination. It returns a line for each row, with a |
	// between two values.
	Query func(sql string) ([]string, error)
}

// Table checks that a destination keeps the rows of a dataset in a table of a database, as
// load.Transactor and load.Opener promise. A Destination must pass the suite Destination
// besides. open gives a new empty place for each case.
func Table(t *testing.T, open func(t *testing.T) TablePlace) {
	cases := []struct {
		name string
		run  func(*tableBench)
	}{
		{"rows are in the table once a run commits", tableCommits},
		{"a run replaces the rows of its parts and no others", tableReplaces},
		{"a result moves to another part", tableMoves},
		{"an equal part stays", tableReuses},
		{"a part without rows makes the table", tableEmpty},
		{"whatever kills a commit, the table holds one whole run", tableKilled},
		{"whatever fails in a commit, the table holds one whole run", tableConflict},
		{"a reader that polls never sees half a run", tablePolled},
		{"a new column is null in the rows of older parts", tableNewColumn},
		{"a column changes its type only with all parts", tableRetyped},
		{"columns that somebody changed are refused", tableAltered},
		{"a table that formetl did not make is refused", tableForeign},
		{"a part's bytes come back from its rows", tableBytes},
		{"a changed row changes the bytes of its part", tableChangedRow},
		{"a missing row is told by the listing", tableMissingRow},
		{"a table that was dropped is told by the listing", tableDropped},
		{"a row of others stays", tableForeignRow},
		{"a list's elements are rows of a table", tableElements},
		{"names and texts of every kind", tableStrange},
		{"what each run committed stands in a table", tableRuns},
		{"a schema without the result's id is refused", tableWithoutID},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := open(t)
			c.run(&tableBench{T: t, place: p, d: p.Open(), columns: tablerun.Columns()})
		})
	}
}

// tableBench is one case's test, place and first destination.
type tableBench struct {
	*testing.T
	place   TablePlace
	d       load.Destination
	columns *arrow.Schema
}

// results are the rows of a test: a text for each result's id.
type results map[int64]string

func (b *tableBench) must(what string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

// query runs a statement past the destination.
func (b *tableBench) query(sql string, values ...any) []string {
	b.Helper()
	lines, err := b.place.Query(fmt.Sprintf(sql, values...))
	b.must(sql, err)
	return lines
}

// batch returns the rows of results in the order of their ids. Columns behind the first two
// hold the id as a text.
func (b *tableBench) batch(rows results) arrow.RecordBatch {
	ids := slices.Sorted(maps.Keys(rows))
	return Build(memory.DefaultAllocator, b.columns, len(ids), func(to array.Builder, column, row int) {
		switch to := to.(type) {
		case *array.Int64Builder:
			to.Append(ids[row])
		case *array.StringBuilder:
			if column == 1 {
				to.Append(rows[ids[row]])
			} else {
				to.Append(fmt.Sprint("more ", ids[row]))
			}
		case *array.Float64Builder:
			to.Append(float64(ids[row]) / 4)
		default:
			to.AppendNull()
		}
	})
}

// encoded returns the bytes of batches.
func (b *tableBench) encoded(batches ...arrow.RecordBatch) []byte {
	b.Helper()
	defer func() {
		for _, batch := range batches {
			batch.Release()
		}
	}()
	return tablerun.Encoded(b, b.place.Format, b.columns, batches...)
}

// part stages rows as the part of a day.
func (b *tableBench) part(run string, day, generation int, data []byte, ids []int64) load.PreparedPart {
	b.Helper()
	from := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 0, 1)
	u, err := b.d.Stage(b.Context(), run, load.PartName(load.PartKey{From: from, To: to, Generation: generation, Extension: b.place.Format.Extension}))
	b.must("stage", err)
	for at := 0; at < len(data); at += 1000 {
		_, err = u.Write(data[at:min(at+1000, len(data))])
		b.must("write", err)
	}
	p, err := u.Prepare(b.Context())
	b.must("prepare", err)
	part := load.Part{Path: p.Name, From: load.Wall(from), To: load.Wall(to), Rows: int64(len(ids)), Bytes: p.Bytes, SHA256: p.SHA256}
	if len(ids) > 0 {
		part.MinID, part.MaxID = slices.Min(ids), slices.Max(ids)
		set := roaring64.New()
		for _, id := range ids {
			set.Add(uint64(id)) //nolint:gosec // not negative
		}
		_, part.IDs, err = load.EncodeIDs(set)
		b.must("encode the ids", err)
	}
	return load.PreparedPart{Part: part, Prepared: p}
}

// change stages a run that replaces the parts of days.
func (b *tableBench) change(run string, days map[int]results) load.DatasetCommit {
	b.Helper()
	parts := map[int]func(generation int) load.PreparedPart{}
	for day, rows := range days {
		parts[day] = func(generation int) load.PreparedPart {
			return b.part(run, day, generation, b.encoded(b.batch(rows)), slices.Collect(maps.Keys(rows)))
		}
	}
	return b.changeParts(run, parts)
}

func (b *tableBench) changeParts(run string, days map[int]func(generation int) load.PreparedPart) load.DatasetCommit {
	b.Helper()
	base, version, err := load.ReadManifest(b.Context(), b.d, load.ManifestName)
	var old, kept []load.Part
	generation := 1
	if !errors.Is(err, load.ErrNotExist) {
		b.must("read the manifest", err)
		generation = load.NextGeneration(base.Parts)
		for _, p := range base.Parts {
			if days[p.From.Day()] == nil {
				kept = append(kept, p)
			} else {
				old = append(old, p)
			}
		}
	}
	fresh := make([]load.PreparedPart, 0, len(days))
	for _, day := range slices.Sorted(maps.Keys(days)) {
		fresh = append(fresh, days[day](generation))
	}
	reuse := load.ReuseParts(old, fresh)
	m := load.Manifest{
		Format: b.place.Format.Name, Pipeline: "feedback", Form: "form1", RunID: run, CreatedAt: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		Range:     load.Span(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)),
		Watermark: load.Wall(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)), Parts: slices.Concat(kept, reuse.Parts),
	}
	for _, p := range m.Parts {
		m.Rows += p.Rows
	}
	return load.DatasetCommit{RunID: run, Manifest: m, Base: version, New: reuse.New, Unused: reuse.Duplicates, Superseded: reuse.Superseded}
}

// run replaces the parts of days.
func (b *tableBench) run(run string, days map[int]results) {
	b.Helper()
	b.must("commit "+run, b.change(run, days).Do(b.Context(), b.d))
}

// rows checks what the table holds, and that each part gives its bytes.
func (b *tableBench) rows(want ...results) {
	b.Helper()
	all := results{}
	for _, rows := range want {
		maps.Copy(all, rows)
	}
	lines := make([]string, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, fmt.Sprintf("%d|%s", id, all[id]))
	}
	if got := b.query("SELECT id, text FROM %s ORDER BY id", b.place.Name); !slices.Equal(got, lines) {
		b.Fatalf("the table holds %q, want %q", got, lines)
	}
	m, _, err := load.ReadManifest(b.Context(), b.place.Open(), load.ManifestName)
	b.must("read the manifest", err)
	for _, p := range m.Parts {
		if data := b.open(p.Path); digest(data) != p.SHA256 {
			b.Fatalf("%s gives other bytes than were staged: %q", p.Path, data)
		}
	}
	found, err := load.TakeInventory(b.Context(), b.place.Open(), m)
	b.must("take the inventory", err)
	if len(found.Damaged)+len(found.Unlisted) > 0 {
		b.Fatalf("the inventory is %+v", found)
	}
}

// open reads a part.
func (b *tableBench) open(name string) []byte {
	b.Helper()
	o, err := b.place.Open().(load.Opener).Open(b.Context(), name)
	b.must("open", err)
	data, err := io.ReadAll(o)
	b.must("read "+name, err)
	b.must("close", o.Close())
	return data
}

// there tells whether the table exists.
func (b *tableBench) there() bool {
	_, err := b.place.Query("SELECT count(*) FROM " + b.place.Name)
	return err == nil
}

// nothingStaged checks that nothing is left of runs that ended.
func (b *tableBench) nothingStaged() {
	b.Helper()
	left, err := b.place.Open().(load.Sweeper).Leftovers(b.Context())
	b.must("leftovers", err)
	if len(left) > 0 {
		b.Fatalf("left over is %+v", left)
	}
}
