package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
	"github.com/formetl/formetl/load/loadtest"
)

// idField is a field that holds the result's id, as transform makes it.
func idField(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{tables.MetaFrom}, []string{tables.FromResultID})}
}

// columnsOf is a schema of an id and a text, and then others.
func columnsOf(more ...arrow.Field) *arrow.Schema {
	return arrow.NewSchema(append([]arrow.Field{idField("id"), {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}}, more...), nil)
}

// encoded returns the bytes of a batch, which it releases.
func encoded(t testing.TB, batch arrow.RecordBatch) []byte {
	t.Helper()
	defer batch.Release()
	var out bytes.Buffer
	e, err := Format().New(&out, batch.Schema(), load.EncodeOptions{})
	if err == nil {
		err = errors.Join(e.Write(batch), e.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// table is a table of a test, in a database of its own.
type table struct {
	*testing.T
	*Destination
	database string
	columns  *arrow.Schema
}

// name is the table as SQL names it.
const name = `forms."Strange ""table"`

func newTable(t *testing.T) *table {
	b := &table{T: t, database: server.Database(t), columns: columnsOf()}
	b.Destination = b.again()
	return b
}

// again returns the destination as another process has it.
func (b *table) again() *Destination { return open(b.T, b.database, `forms.Strange "table`) }

// results are rows: a text for each result's id.
type results map[int64]string

func (b *table) must(what string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

// query checks the lines that a query past the destination gives. %s stands for the table.
func (b *table) query(sql string, want ...string) {
	b.Helper()
	if got := query(b.T, b.database, strings.ReplaceAll(sql, "%s", name)); got != strings.Join(want, "\n") {
		b.Fatalf("%s gives %q, want %q", sql, got, want)
	}
}

// batch returns the rows of results in the order of their ids. Columns behind the first two
// hold what the id says.
func (b *table) batch(rows results) arrow.RecordBatch {
	ids := slices.Sorted(maps.Keys(rows))
	return loadtest.Build(memory.DefaultAllocator, b.columns, len(ids), func(to array.Builder, column, row int) {
		switch to := to.(type) {
		case *array.Int64Builder:
			to.Append(ids[row])
		case *array.Float64Builder:
			to.Append(float64(ids[row]) / 4)
		case *array.StringBuilder:
			text := rows[ids[row]]
			if column > 1 {
				text = fmt.Sprint("more ", ids[row])
			}
			to.Append(text)
		}
	})
}

// part stages the bytes of rows as the part of a day.
func (b *table) part(run string, day, generation, rows int, data []byte, ids []int64) load.PreparedPart {
	b.Helper()
	from := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 0, 1)
	u, err := b.Stage(b.Context(), run, load.PartName(load.PartKey{From: from, To: to, Generation: generation, Extension: Format().Extension}))
	b.must("stage", err)
	for at := 0; at < len(data); at += 1000 {
		_, err = u.Write(data[at:min(at+1000, len(data))])
		b.must("write", err)
	}
	p, err := u.Prepare(b.Context())
	b.must("prepare", err)
	part := load.Part{Path: p.Name, From: load.Wall(from), To: load.Wall(to), Rows: int64(rows), Bytes: p.Bytes, SHA256: p.SHA256}
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

// change stages a run that replaces the parts of days. stage stages the part of a day.
func (b *table) change(run string, days []int, stage func(day, generation int) load.PreparedPart) load.Commit {
	b.Helper()
	base, version, err := load.ReadManifest(b.Context(), b, load.ManifestName)
	var old, kept []load.Part
	if !errors.Is(err, load.ErrNotExist) {
		b.must("read the manifest", err)
		for _, p := range base.Parts {
			if slices.Contains(days, p.From.Day()) {
				old = append(old, p)
			} else {
				kept = append(kept, p)
			}
		}
	}
	fresh := make([]load.PreparedPart, 0, len(days))
	for _, day := range days {
		fresh = append(fresh, stage(day, load.NextGeneration(slices.Concat(old, kept))))
	}
	reuse := load.ReuseParts(old, fresh)
	m := load.Manifest{
		Format: Format().Name, Pipeline: "feedback", Form: "form1", RunID: run, CreatedAt: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		Watermark: load.Wall(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)), Parts: slices.Concat(kept, reuse.Parts),
	}
	for _, p := range m.Parts {
		m.Rows += p.Rows
	}
	return load.Commit{RunID: run, Manifest: m, Base: version, New: reuse.New, Unused: reuse.Duplicates, Superseded: reuse.Superseded}
}

// replaces stages a run that replaces the parts of days by results.
func (b *table) replaces(run string, days map[int]results) load.Commit {
	b.Helper()
	return b.change(run, slices.Sorted(maps.Keys(days)), func(day, generation int) load.PreparedPart {
		return b.part(run, day, generation, len(days[day]), encoded(b.T, b.batch(days[day])), slices.Collect(maps.Keys(days[day])))
	})
}

// run replaces the parts of days.
func (b *table) run(run string, days map[int]results) {
	b.Helper()
	b.must("commit "+run, b.replaces(run, days).Do(b.Context(), b))
}

// only replaces the part of the first day by rows that are encoded already.
func (b *table) only(run string, rows int, data []byte, ids []int64) {
	b.Helper()
	b.must("commit "+run, b.change(run, []int{1}, func(day, generation int) load.PreparedPart {
		return b.part(run, day, generation, rows, data, ids)
	}).Do(b.Context(), b))
}

// manifest returns the manifest, of whose parts each must give the bytes that were staged.
func (b *table) manifest() *load.Manifest {
	b.Helper()
	m, _, err := load.ReadManifest(b.Context(), b.again(), load.ManifestName)
	b.must("read the manifest", err)
	for _, p := range m.Parts {
		_, sum, err := load.Digest(b.Context(), b.again(), p.Path)
		if err != nil || sum != p.SHA256 {
			b.Fatalf("%s gives other bytes than were staged: %v", p.Path, err)
		}
	}
	return m
}

// rows checks what the table holds, and that nothing else lies there.
func (b *table) rows(want ...results) {
	b.Helper()
	all := results{}
	for _, rows := range want {
		maps.Copy(all, rows)
	}
	lines := make([]string, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, fmt.Sprintf("%d|%s", id, all[id]))
	}
	b.query("SELECT id, text FROM %s ORDER BY id", lines...)
	found, err := load.TakeInventory(b.Context(), b.again(), b.manifest())
	b.must("take the inventory", err)
	left, err := b.again().Leftovers(b.Context())
	b.must("leftovers", err)
	if len(found.Damaged)+len(found.Unlisted)+len(left) > 0 {
		b.Fatalf("the inventory is %+v, and left over is %+v", found, left)
	}
}

// damaged checks which parts the inventory finds damaged.
func (b *table) damaged(m *load.Manifest, missing ...bool) {
	b.Helper()
	found, err := load.TakeInventory(b.Context(), b, m)
	b.must("take the inventory", err)
	if !slices.EqualFunc(found.Damaged, missing, func(p load.DamagedPart, gone bool) bool { return p.Missing == gone }) {
		b.Fatalf("the inventory is %+v", found)
	}
}

// TestRuns: a run replaces the rows of its parts and no others.
func TestRuns(t *testing.T) {
	for name, c := range map[string]struct {
		first, second map[int]results
		want          results
	}{
		"rows that change, come late and vanish": {
			map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c", 4: "d"}, 3: {5: "e"}},
			map[int]results{2: {3: "changed", 6: "late"}, 3: {}},
			results{1: "a", 2: "b", 3: "changed", 6: "late"},
		},
		"a row that moves to another part": {
			map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}},
			map[int]results{1: {1: "a"}, 2: {2: "b moved", 3: "c"}},
			results{1: "a", 2: "b moved", 3: "c"},
		},
		"a part without rows": {map[int]results{1: {}}, map[int]results{1: {7: "late"}}, results{7: "late"}},
		"an equal part":       {map[int]results{1: {1: "a"}, 2: {2: "b"}}, map[int]results{1: {1: "a"}, 2: {2: "x"}}, results{1: "a", 2: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTable(t)
			b.run("run1", c.first)
			b.rows(slices.Collect(maps.Values(c.first))...)
			b.run("run2", c.second)
			b.rows(c.want)
		})
	}
}

// TestOneRun: rows are in the table once they are published, and tables tell of the run.
func TestOneRun(t *testing.T) {
	b := newTable(t)
	c := b.replaces("run1", map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}})
	recorded, err := c.Record(b.Context(), b)
	b.must("record", err)
	b.query("SELECT count(*) FROM pg_class WHERE relname = 'Strange \"table'", "0")
	b.must("publish", recorded.Publish(b.Context()))
	b.rows(results{1: "a", 2: "b", 3: "c"})
	b.must("commit again", c.Do(b.Context(), b))
	b.rows(results{1: "a", 2: "b", 3: "c"})
	b.run("run2", map[int]results{2: {}})
	b.query("SELECT run_id, pipeline, form, watermark, rows FROM forms._formetl_runs ORDER BY committed_at",
		"run1|feedback|form1|2026-02-01 00:00:00|3", "run2|feedback|form1|2026-02-01 00:00:00|2")
	b.query("SELECT id, part_from FROM forms._formetl_ids ORDER BY id", "1|2026-01-01 00:00:00", "2|2026-01-01 00:00:00")
}

// TestKilled: whatever kills a commit, the table holds one whole run.
func TestKilled(t *testing.T) {
	b := newTable(t)
	before := map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}, 3: {}}
	after := map[int]results{1: {1: "x", 4: "y"}, 3: {5: "z"}}
	stop := errors.New("killed")
	for n, killed := 0, true; killed; n++ {
		b.run(fmt.Sprint("before", n), before)
		c := b.replaces(fmt.Sprint("after", n), after)
		calls := 0
		c.Hook = func(load.Step) error {
			if calls++; calls == n+1 {
				return stop
			}
			return nil
		}
		err := c.Do(b.Context(), b)
		if killed = errors.Is(err, stop); killed {
			b.query("SELECT string_agg(text, '' ORDER BY id) FROM %s", "abc")
		} else {
			b.must("commit", err)
		}
		r, err := load.Recover(b.Context(), b.again(), "", nil)
		b.must("recover", err)
		if r.Finished || !killed {
			b.rows(after[1], before[2], after[3])
			continue
		}
		b.must("abort", load.AbortAll(b.Context(), b, slices.Concat(c.New, c.Unused)...))
		b.rows(before[1], before[2])
	}
}

// TestTakenBack: somebody else writes the manifest within the commit, or what was staged is gone.
func TestTakenBack(t *testing.T) {
	b := newTable(t)
	b.run("run1", map[int]results{1: {1: "a"}})
	c := b.replaces("run2", map[int]results{1: {1: "lost"}, 2: {2: "lost too"}})
	b.run("run3", map[int]results{1: {1: "won"}})
	if err := c.Do(b.Context(), b); !errors.Is(err, load.ErrConflict) {
		b.Fatalf("the commit of an old base gives %v", err)
	}
	b.rows(results{1: "won"})
	c = b.replaces("run4", map[int]results{1: {1: "gone"}, 2: {2: "x"}})
	recorded, err := c.Record(b.Context(), b)
	b.must("record", err)
	b.must("abort", b.Abort(b.Context(), c.New[1]))
	if err := recorded.Publish(b.Context()); !errors.Is(err, load.ErrStagedGone) {
		b.Fatalf("the commit of what is gone gives %v", err)
	}
	b.rows(results{1: "won"})
	b.run("run5", map[int]results{1: {1: "at last"}})
	b.rows(results{1: "at last"})
}

// TestNewColumns: a new column is null in the rows of older parts. A type changes only with all parts.
func TestNewColumns(t *testing.T) {
	b := newTable(t)
	text, number := arrow.Field{Name: "New column", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "New column", Type: arrow.PrimitiveTypes.Float64, Nullable: true}
	b.run("run1", map[int]results{1: {1: "a"}, 2: {2: "b"}})
	b.columns = columnsOf(text)
	b.run("run2", map[int]results{2: {2: "b", 3: "c"}})
	b.query(`SELECT id, coalesce("New column", 'null') FROM %s ORDER BY id`, "1|null", "2|more 2", "3|more 3")
	b.columns = columnsOf(number)
	var unfit *load.TableError
	if err := b.replaces("run3", map[int]results{2: {4: "x"}}).Do(b.Context(), b); !errors.As(err, &unfit) {
		b.Fatalf("another type beside older parts gives %v", err)
	}
	b.rows(results{1: "a", 2: "b", 3: "c"})
	if r, err := load.Recover(b.Context(), b, "", nil); err != nil || r.Finished {
		b.Fatalf("the commit that cannot be done is recovered as %+v, %v", r, err)
	}
	b.run("run4", map[int]results{1: {1: "x"}, 2: {4: "y"}})
	b.query("SELECT * FROM %s ORDER BY id", "1|x|0.25", "4|y|1")
}

// TestAltered: columns that somebody changed are refused, and a table that formetl did not make.
func TestAltered(t *testing.T) {
	b := newTable(t)
	replaceable := func() error { return b.again().Replaceable(b.Context(), load.ManifestName) }
	b.must("a table that is not there", replaceable())
	b.run("run1", map[int]results{1: {1: "a"}})
	b.query("ALTER TABLE %s ADD COLUMN own integer")
	b.must("a table with a column of others", replaceable())
	b.query(`ALTER TABLE %s RENAME COLUMN text TO note`)
	var unfit *load.TableError
	if err := replaceable(); !errors.As(err, &unfit) || !strings.Contains(err.Error(), `"text"`) {
		b.Fatalf("a table with a renamed column gives %v", err)
	}
	b = newTable(t)
	b.query("CREATE TABLE %s (x integer)")
	var create *load.CreateError
	if err := replaceable(); !errors.As(err, &create) {
		b.Fatalf("a foreign table gives %v", err)
	}
}

// TestTampered: rows that somebody changed, removed or added.
func TestTampered(t *testing.T) {
	b := newTable(t)
	b.run("run1", map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}})
	m := b.manifest()
	b.query("UPDATE %s SET text = 'forged' WHERE id = 2")
	if _, sum, err := load.Digest(b.Context(), b, m.Parts[0].Path); err != nil || sum == m.Parts[0].SHA256 {
		b.Errorf("the changed row does not tell: %v", err)
	}
	b.query("DELETE FROM %s WHERE id >= 2")
	b.damaged(m, false, true)
	b.run("run2", map[int]results{1: {1: "a", 2: "again"}, 2: {3: "again"}})
	b.rows(results{1: "a", 2: "again", 3: "again"})
	b.query("INSERT INTO %s (id, text) VALUES (99, 'mine')")
	b.run("run3", map[int]results{2: {3: "b"}})
	b.query("SELECT id, text FROM %s ORDER BY id", "1|a", "2|again", "3|b", "99|mine")
	b.query("DROP TABLE %s")
	m, _, err := load.ReadManifest(b.Context(), b, load.ManifestName)
	b.must("read the manifest", err)
	b.damaged(m, true, true)
	if _, err := b.Open(b.Context(), m.Parts[0].Path); !errors.Is(err, load.ErrNotExist) {
		b.Fatalf("a part without a table gives %v", err)
	}
	b.run("run4", map[int]results{1: {1: "new"}, 2: {}})
	b.rows(results{1: "new"})
}

// TestBytes: a part's bytes come back from its rows, whatever their types and order.
func TestBytes(t *testing.T) {
	b := newTable(t)
	schema := loadtest.AllTypes()
	b.columns = arrow.NewSchema(append([]arrow.Field{idField("id")}, schema.Fields()...), nil)
	for seed := range uint64(4) {
		rows := loadtest.Random(memory.DefaultAllocator, schema, 100, seed)
		id := array.NewInt64Builder(memory.DefaultAllocator)
		for row := range 100 {
			id.Append(int64(1000 - 3*row)) // not in the order of ids
		}
		column := id.NewInt64Array()
		data := encoded(t, array.NewRecordBatch(b.columns, append([]arrow.Array{column}, rows.Columns()...), 100))
		b.only(fmt.Sprint("run", seed), 100, data, column.Int64Values())
		b.manifest()
		column.Release()
		rows.Release()
	}
}

// TestElements: the elements of a list are rows of a table, several of one id.
func TestElements(t *testing.T) {
	b := newTable(t)
	from := arrow.NewMetadata([]string{tables.MetaFrom}, []string{"item:7"})
	b.columns = arrow.NewSchema([]arrow.Field{
		idField("id"),
		{Name: "position", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: from},
		{Name: "colours", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: from},
	}, nil)
	run := func(ids []int64, positions []int64, colours ...string) {
		b.Helper()
		batch := loadtest.Build(memory.DefaultAllocator, b.columns, len(ids), func(to array.Builder, column, row int) {
			switch to := to.(type) {
			case *array.Int64Builder:
				to.Append([][]int64{ids, positions}[column][row])
			case *array.StringBuilder:
				to.Append(colours[row])
			}
		})
		b.only("run", len(ids), encoded(t, batch), ids)
		b.manifest()
	}
	run([]int64{1, 1, 1, 2}, []int64{1, 2, 3, 1}, "red", "red", "blue", "green")
	b.query("SELECT id, position, colours FROM %s ORDER BY 1, 2", "1|1|red", "1|2|red", "1|3|blue", "2|1|green")
	run([]int64{1, 3, 3}, []int64{1, 1, 2}, "black", "a", "b")
	b.query("SELECT id, position, colours FROM %s ORDER BY 1, 2", "1|1|black", "3|1|a", "3|2|b")
}

// TestStrange: names and texts of every kind.
func TestStrange(t *testing.T) {
	b := newTable(t)
	fields := []arrow.Field{idField(`the "id"`)}
	seen := map[string]bool{}
	for _, name := range loadtest.HostileNames() {
		if len(name) <= 60 && !seen[strings.ToLower(name)] {
			seen[strings.ToLower(name)] = true
			fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true})
		}
	}
	b.columns = arrow.NewSchema(fields, nil)
	texts := append(loadtest.HostileStrings(), `NUL \000 is a text`, `{"a",NULL}`)
	ids, lengths := make([]int64, len(texts)), make([]string, len(texts))
	for i, text := range texts {
		ids[i], lengths[i] = int64(i+1), fmt.Sprint(len(text))
	}
	batch := loadtest.Build(memory.DefaultAllocator, b.columns, len(texts), func(to array.Builder, _, row int) {
		switch to := to.(type) {
		case *array.Int64Builder:
			to.Append(ids[row])
		case *array.StringBuilder:
			to.Append(texts[row])
		}
	})
	b.only("run", len(texts), encoded(t, batch), ids)
	b.query(`SELECT octet_length("a.b") FROM %s ORDER BY "the ""id"""`, lengths...)
}

func TestSchemaWithoutID(t *testing.T) {
	_, err := Format().New(io.Discard, loadtest.Columns("text", arrow.BinaryTypes.String), load.EncodeOptions{})
	var unfit *load.TableError
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "from: result_id") {
		t.Fatalf("a schema without an id gives %v", err)
	}
}
