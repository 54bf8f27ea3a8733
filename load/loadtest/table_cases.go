package loadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/tablerun"
)

func tableCommits(b *tableBench) {
	c := b.change("run1", map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}})
	if b.there() {
		b.Fatal("the table is there before the commit")
	}
	recorded, err := c.Record(b.Context(), b.d)
	b.must("record", err)
	if b.there() {
		b.Fatal("the table is there before it is published")
	}
	b.must("publish", recorded.Publish(b.Context()))
	b.rows(results{1: "a", 2: "b", 3: "c"})
	b.nothingStaged()
	b.must("commit again", c.Do(b.Context(), b.d))
	b.rows(results{1: "a", 2: "b", 3: "c"})
}

func tableReplaces(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c", 4: "d"}, 3: {5: "e"}})
	b.run("run2", map[int]results{2: {3: "changed", 6: "late"}, 3: {}})
	b.rows(results{1: "a", 2: "b", 3: "changed", 6: "late"})
	b.nothingStaged()
}

func tableMoves(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}})
	b.run("run2", map[int]results{1: {1: "a"}, 2: {2: "b moved", 3: "c"}})
	b.rows(results{1: "a", 2: "b moved", 3: "c"})
}

func tableReuses(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a"}, 2: {2: "b"}})
	c := b.change("run2", map[int]results{1: {1: "a"}, 2: {2: "x"}})
	if len(c.Unused) != 1 || len(c.New) != 1 {
		b.Fatalf("%d parts are new and %d unused", len(c.New), len(c.Unused))
	}
	b.must("commit", c.Do(b.Context(), b.d))
	b.rows(results{1: "a", 2: "x"})
	b.nothingStaged()
}

func tableEmpty(b *tableBench) {
	b.run("run1", map[int]results{1: {}})
	b.rows()
	b.run("run2", map[int]results{1: {7: "late"}})
	b.rows(results{7: "late"})
}

func tableKilled(b *tableBench) {
	before := map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}, 3: {}}
	after := map[int]results{1: {1: "x", 4: "y"}, 3: {5: "z"}}
	for n, killed := 0, true; killed; n++ {
		b.run(fmt.Sprint("before", n), before)
		c := b.change(fmt.Sprint("after", n), after)
		killed = false
		calls := 0
		c.Hook = func(load.Step) error {
			if calls++; calls == n+1 {
				killed = true
				return errKilled
			}
			return nil
		}
		if err := c.Do(b.Context(), b.d); killed != errors.Is(err, errKilled) {
			b.Fatal(err)
		}
		if killed {
			b.rows(before[1], before[2])
		}
		r, err := load.Recover(b.Context(), b.place.Open(), "", nil)
		b.must("recover", err)
		if r.Finished || !killed {
			b.rows(after[1], before[2], after[3])
		} else {
			b.rows(before[1], before[2])
			b.must("abort", load.AbortAll(b.Context(), b.d, slices.Concat(c.New, c.Unused)...))
		}
		b.nothingStaged()
	}
}

// tableConflict lets somebody else write the manifest within the commit.
func tableConflict(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a"}})
	c := b.change("run2", map[int]results{1: {1: "lost"}, 2: {2: "lost too"}})
	b.run("run3", map[int]results{1: {1: "won"}})
	if err := c.Do(b.Context(), b.d); !errors.Is(err, load.ErrConflict) {
		b.Fatalf("the commit of an old base gives %v", err)
	}
	b.rows(results{1: "won"})
	b.nothingStaged()
	// What was staged is gone, as a lifecycle rule or a crash of the server has it.
	c = b.change("run4", map[int]results{1: {1: "gone"}, 2: {2: "x"}})
	recorded, err := c.Record(b.Context(), b.d)
	b.must("record", err)
	b.must("abort", b.d.Abort(b.Context(), c.New[1]))
	if err := recorded.Publish(b.Context()); !errors.Is(err, load.ErrStagedGone) {
		b.Fatalf("the commit of what is gone gives %v", err)
	}
	b.rows(results{1: "won"})
	b.nothingStaged()
	b.run("run5", map[int]results{1: {1: "at last"}})
	b.rows(results{1: "at last"})
}

// tablePolled replaces all rows again and again. All rows of a run have its number, and
// there are as many as the number says.
func tablePolled(b *tableBench) {
	content := func(n int) map[int]results {
		days := map[int]results{1: {}, 2: {}}
		for id := range n {
			days[1+id%2][int64(id)] = fmt.Sprint(n)
		}
		return days
	}
	b.run("run10", content(10))
	ctx, stop := context.WithCancel(b.Context())
	var polls atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			lines, err := b.place.Query("SELECT count(*), min(text), max(text) FROM " + b.place.Name)
			if err != nil || len(lines) != 1 {
				b.Errorf("poll: %q, %v", lines, err)
				break
			}
			v := strings.Split(lines[0], "|")
			if v[0] != v[1] || v[0] != v[2] {
				b.Errorf("a reader saw %s rows, of the runs from %s to %s", v[0], v[1], v[2])
				break
			}
			polls.Add(1)
		}
	}()
	// Runs go on until the reader has polled often enough, which takes longer where starting its
	// program does.
	for n := 11; n < 31 || n < 500 && polls.Load() < 10; n++ {
		c := b.change(fmt.Sprint("run", n), content(n))
		if n%3 == 0 { // a run that is killed, and whose commit the next one finishes
			steps := 0
			c.Hook = func(load.Step) error {
				if steps++; steps == n/2 {
					return errKilled
				}
				return nil
			}
		}
		if err := c.Do(b.Context(), b.d); err != nil && !errors.Is(err, errKilled) {
			b.Error(err)
		}
		if _, err := load.Recover(b.Context(), b.d, "", nil); err != nil {
			b.Error(err)
		}
	}
	stop()
	if <-ended; polls.Load() < 10 {
		b.Errorf("the reader polled only %d times", polls.Load())
	}
}

func tableNewColumn(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a"}, 2: {2: "b"}})
	b.columns = tablerun.Columns(arrow.Field{Name: "New column", Type: arrow.BinaryTypes.String, Nullable: true})
	b.run("run2", map[int]results{2: {2: "b", 3: "c"}})
	b.rows(results{1: "a", 2: "b", 3: "c"})
	got := b.query(`SELECT id, coalesce("New column", 'null') FROM %s ORDER BY id`, b.place.Name)
	if want := []string{"1|null", "2|more 2", "3|more 3"}; !slices.Equal(got, want) {
		b.Fatalf("got %q, want %q", got, want)
	}
}

func tableRetyped(b *tableBench) {
	b.columns = tablerun.Columns(arrow.Field{Name: "n", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "dropped", Type: arrow.BinaryTypes.String, Nullable: true})
	b.run("run1", map[int]results{1: {1: "a"}, 2: {4: "b"}})
	b.columns = tablerun.Columns(arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	var unfit *load.TableError
	c := b.change("run2", map[int]results{2: {4: "x"}})
	if err := c.Do(b.Context(), b.d); !errors.As(err, &unfit) {
		b.Fatalf("another type beside older parts gives %v", err)
	}
	b.rows(results{1: "a", 4: "b"})
	if r, err := load.Recover(b.Context(), b.d, "", nil); err != nil || r.Finished {
		b.Fatalf("the commit that cannot be done is recovered as %+v, %v", r, err)
	}
	b.nothingStaged()
	b.run("run3", map[int]results{1: {1: "x"}, 2: {4: "y"}})
	b.rows(results{1: "x", 4: "y"})
	if got := b.query("SELECT * FROM %s ORDER BY id", b.place.Name); !slices.Equal(got, []string{"1|x|0.25", "4|y|1"}) && !slices.Equal(got, []string{"1|x|0.25", "4|y|1.0"}) {
		b.Fatalf("got %q", got)
	}
}

// replaceable asks whether a run may use the table.
func (b *tableBench) replaceable() error {
	return b.place.Open().(load.Replacer).Replaceable(b.Context(), load.ManifestName)
}

func tableAltered(b *tableBench) {
	b.must("a table that is not there", b.replaceable())
	b.run("run1", map[int]results{1: {1: "a"}})
	b.must("a table of a run", b.replaceable())
	b.query("ALTER TABLE %s ADD COLUMN own integer", b.place.Name)
	b.must("a table with a column of others", b.replaceable())
	b.query(`ALTER TABLE %s RENAME COLUMN text TO note`, b.place.Name)
	var unfit *load.TableError
	if err := b.replaceable(); !errors.As(err, &unfit) || !strings.Contains(err.Error(), `"text"`) {
		b.Fatalf("a table with a renamed column gives %v", err)
	}
}

func tableForeign(b *tableBench) {
	b.query("CREATE TABLE %s (x integer)", b.place.Name)
	var create *load.CreateError
	if err := b.replaceable(); !errors.As(err, &create) {
		b.Fatalf("a foreign table gives %v", err)
	}
	if got := b.query("SELECT count(*) FROM %s", b.place.Name); !slices.Equal(got, []string{"0"}) {
		b.Fatalf("got %q", got)
	}
}

func tableBytes(b *tableBench) {
	schema := AllTypes()
	b.columns = arrow.NewSchema(append([]arrow.Field{tablerun.ID("id")}, schema.Fields()...), nil)
	for seed := range uint64(4) {
		next := int64(0)
		batch := Build(memory.DefaultAllocator, b.columns, 0, nil)
		batch.Release()
		rows := Random(memory.DefaultAllocator, schema, 100, seed)
		id := array.NewInt64Builder(memory.DefaultAllocator)
		ids := make([]int64, 0, 100)
		for range 100 {
			next += 3
			ids = append(ids, 1000-next) // not in the order of ids
			id.Append(1000 - next)
		}
		column := id.NewArray()
		data := b.encoded(array.NewRecordBatch(b.columns, append([]arrow.Array{column}, rows.Columns()...), 100))
		column.Release()
		rows.Release()
		b.must("commit", b.changeParts(fmt.Sprint("run", seed), map[int]func(int) load.PreparedPart{
			1: func(generation int) load.PreparedPart {
				return b.part(fmt.Sprint("run", seed), 1, generation, data, ids)
			},
		}).Do(b.Context(), b.d))
		m, _, err := load.ReadManifest(b.Context(), b.d, load.ManifestName)
		b.must("read the manifest", err)
		if got := b.open(m.Parts[0].Path); !bytes.Equal(got, data) {
			b.Fatalf("%d bytes came back that differ from the %d staged", len(got), len(data))
		}
	}
}

func tableChangedRow(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}})
	m, _, err := load.ReadManifest(b.Context(), b.d, load.ManifestName)
	b.must("read the manifest", err)
	b.query("UPDATE %s SET text = 'forged' WHERE id = 2", b.place.Name)
	if digest(b.open(m.Parts[0].Path)) == m.Parts[0].SHA256 || digest(b.open(m.Parts[1].Path)) != m.Parts[1].SHA256 {
		b.Error("the changed row does not tell")
	}
	b.run("run2", map[int]results{1: {1: "a", 2: "mended"}})
	b.rows(results{1: "a", 2: "mended", 3: "c"})
}

func tableMissingRow(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a", 2: "b"}, 2: {3: "c"}})
	b.query("DELETE FROM %s WHERE id >= 2", b.place.Name)
	m, _, err := load.ReadManifest(b.Context(), b.d, load.ManifestName)
	b.must("read the manifest", err)
	found, err := load.TakeInventory(b.Context(), b.d, m)
	b.must("take the inventory", err)
	if len(found.Damaged) != 2 || found.Damaged[0].Missing || !found.Damaged[1].Missing {
		b.Fatalf("the inventory is %+v", found)
	}
	b.run("run2", map[int]results{1: {1: "a", 2: "again"}, 2: {3: "again"}})
	b.rows(results{1: "a", 2: "again", 3: "again"})
}

func tableDropped(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a"}})
	b.query("DROP TABLE %s", b.place.Name)
	m, _, err := load.ReadManifest(b.Context(), b.d, load.ManifestName)
	b.must("read the manifest", err)
	found, err := load.TakeInventory(b.Context(), b.d, m)
	b.must("take the inventory", err)
	if len(found.Damaged) != 1 || !found.Damaged[0].Missing {
		b.Fatalf("the inventory is %+v", found)
	}
	if _, err := b.d.(load.Opener).Open(b.Context(), m.Parts[0].Path); !errors.Is(err, load.ErrNotExist) {
		b.Fatalf("a part without a table gives %v", err)
	}
	b.run("run2", map[int]results{1: {1: "again"}})
	b.rows(results{1: "again"})
}

func tableForeignRow(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a"}})
	b.query("INSERT INTO %s (id, text) VALUES (99, 'mine')", b.place.Name)
	b.run("run2", map[int]results{1: {1: "b"}})
	if got := b.query("SELECT id, text FROM %s ORDER BY id", b.place.Name); !slices.Equal(got, []string{"1|b", "99|mine"}) {
		b.Fatalf("got %q", got)
	}
}

func tableElements(b *tableBench) {
	from := arrow.NewMetadata([]string{"formetl.from"}, []string{"item:7"})
	b.columns = arrow.NewSchema([]arrow.Field{
		tablerun.ID("id"),
		{Name: "position", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: from},
		{Name: "colours", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: from},
	}, nil)
	elements := func(lists map[int64][]string) func(int) load.PreparedPart {
		return func(generation int) load.PreparedPart {
			var rows [][3]any
			ids := slices.Sorted(maps.Keys(lists))
			for _, id := range ids {
				for i, e := range lists[id] {
					rows = append(rows, [3]any{id, int64(i + 1), e})
				}
			}
			batch := Build(memory.DefaultAllocator, b.columns, len(rows), func(to array.Builder, column, row int) {
				switch to := to.(type) {
				case *array.Int64Builder:
					to.Append(rows[row][column].(int64))
				case *array.StringBuilder:
					to.Append(rows[row][column].(string))
				}
			})
			p := b.part("run", 1, generation, b.encoded(batch), ids)
			p.Part.Rows = int64(len(rows))
			return p
		}
	}
	want := func(want ...string) {
		b.Helper()
		if got := b.query("SELECT id, position, colours FROM %s ORDER BY 1, 2", b.place.Name); !slices.Equal(got, want) {
			b.Fatalf("got %q, want %q", got, want)
		}
		m, _, err := load.ReadManifest(b.Context(), b.d, load.ManifestName)
		b.must("read the manifest", err)
		if digest(b.open(m.Parts[0].Path)) != m.Parts[0].SHA256 {
			b.Error("other bytes came back than were staged")
		}
	}
	b.must("commit", b.changeParts("run", map[int]func(int) load.PreparedPart{1: elements(map[int64][]string{1: {"red", "red", "blue"}, 2: {"green"}})}).Do(b.Context(), b.d))
	want("1|1|red", "1|2|red", "1|3|blue", "2|1|green")
	b.must("commit", b.changeParts("run", map[int]func(int) load.PreparedPart{1: elements(map[int64][]string{1: {"black"}, 3: {"a", "b"}})}).Do(b.Context(), b.d))
	want("1|1|black", "3|1|a", "3|2|b")
}

func tableStrange(b *tableBench) {
	b.Helper()
	fields := []arrow.Field{tablerun.ID(`the "id"`)}
	seen := map[string]bool{}
	for _, name := range HostileNames() {
		if len(name) <= 60 && !seen[strings.ToLower(name)] {
			seen[strings.ToLower(name)] = true
			fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true})
		}
	}
	b.columns = arrow.NewSchema(fields, nil)
	texts := append(HostileStrings(), `NUL \000 is a text`, `{"a",NULL}`)
	ids := make([]int64, len(texts))
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	batch := Build(memory.DefaultAllocator, b.columns, len(texts), func(to array.Builder, _, row int) {
		switch to := to.(type) {
		case *array.Int64Builder:
			to.Append(ids[row])
		case *array.StringBuilder:
			to.Append(texts[row])
		}
	})
	b.must("commit", b.changeParts("run", map[int]func(int) load.PreparedPart{
		1: func(generation int) load.PreparedPart { return b.part("run", 1, generation, b.encoded(batch), ids) },
	}).Do(b.Context(), b.d))
	lengths := b.query(`SELECT octet_length("a.b") FROM %s ORDER BY "the ""id"""`, b.place.Name)
	for i, text := range texts {
		if lengths[i] != fmt.Sprint(len(text)) {
			b.Errorf("%q has %s bytes in the table", text, lengths[i])
		}
	}
}

func tableRuns(b *tableBench) {
	b.run("run1", map[int]results{1: {1: "a", 2: "b"}})
	b.run("run2", map[int]results{2: {3: "c"}})
	got := b.query("SELECT run_id, pipeline, form, watermark, rows FROM %sruns ORDER BY committed_at", b.place.Own)
	if want := []string{"run1|feedback|form1|2026-02-01 00:00:00|2", "run2|feedback|form1|2026-02-01 00:00:00|3"}; !slices.Equal(got, want) {
		b.Fatalf("got %q, want %q", got, want)
	}
	got = b.query("SELECT id, part_from FROM %sids ORDER BY id", b.place.Own)
	if want := []string{"1|2026-01-01 00:00:00", "2|2026-01-01 00:00:00", "3|2026-01-02 00:00:00"}; !slices.Equal(got, want) {
		b.Fatalf("got %q, want %q", got, want)
	}
}

func tableWithoutID(b *tableBench) {
	_, err := b.place.Format.New(io.Discard, Columns("text", arrow.BinaryTypes.String), load.EncodeOptions{})
	var unfit *load.TableError
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "from: result_id") {
		b.Fatalf("a schema without an id gives %v", err)
	}
}
