package postgres

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// server is the PostgreSQL of all tests of the package.
var server *needs.Postgres

func TestMain(m *testing.M) {
	var run func() int
	server, run = needs.PostgresMain(m)
	os.Exit(run())
}

// bench is a table of a database of its own, and what it should hold.
type bench struct {
	t        *testing.T
	server   *needs.Postgres
	database string
	table    *Table
	runs     int
}

func newBench(t *testing.T, set func(*Settings)) *bench {
	t.Helper()
	b := &bench{t: t, server: server, database: server.Database(t)}
	b.table = b.open(server.DSN(b.database, "sslmode=disable"), set)
	return b
}

// open opens the table by a DSN, as another process does.
func (b *bench) open(dsn string, set func(*Settings)) *Table {
	b.t.Helper()
	address, err := Address(dsn)
	if err != nil {
		b.t.Fatal(err)
	}
	s := Settings{DSN: dsn}
	if set != nil {
		set(&s)
	}
	table, err := New(address+"/forms.feedback/", s)
	if err != nil {
		b.t.Fatal(err)
	}
	return table
}

// query runs a statement as the superuser, and gives what psql printed.
func (b *bench) query(sql string) string {
	b.t.Helper()
	out, err := b.server.Query(b.database, sql)
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSuffix(out, "\n")
}

// answers are what results hold, by id.
type answers map[int64]string

// null is an answer that is missing.
const null = "<null>"

// rowsOf are rows with the columns id and answer, which is a text or of another type.
func rowsOf(of answers, kind arrow.DataType) load.TableRows {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "answer", Type: kind, Nullable: true}}, nil)
	return load.TableRows{
		Columns: []load.Column{{Name: "id", From: "result_id"}, {Name: "answer", From: "item:1", Label: "Your answer"}},
		Schema:  schema,
		Each: func(_ context.Context, visit func(arrow.RecordBatch) error) error {
			build := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			for id, answer := range of {
				build.Field(0).(*array.Int64Builder).Append(id)
				if answer == null {
					build.Field(1).AppendNull()
				} else if err := build.Field(1).AppendValueFromString(answer); err != nil {
					return err
				}
			}
			return visit(build.NewRecordBatch())
		},
	}
}

// loadOf makes a load of the results of one part, which replaces what the table held of it.
func (b *bench) loadOf(table *Table, of answers, part string, full bool) load.TableLoad {
	b.t.Helper()
	m, version, err := table.Last(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.runs++
	ids := idset.Of(slices.Collect(maps.Keys(of))...)
	fresh := load.Part{Path: part, Rows: int64(len(of)), MinID: ids.Min(), MaxID: ids.Max()}
	l := load.TableLoad{
		Version: version, Rows: []load.TableRows{rowsOf(of, arrow.BinaryTypes.String)}, Full: full,
		Parts: []load.TablePart{{Part: fresh, IDs: ids}},
	}
	l.Manifest = load.Manifest{Format: FormatName, Pipeline: "p", Form: "f", RunID: fmt.Sprint("run", b.runs), CreatedAt: time.Now(), Schema: l.Rows[0].Columns, Parts: []load.Part{fresh}, Rows: fresh.Rows}
	if m != nil && !full {
		for _, p := range m.Parts {
			if p.Path != part {
				l.Manifest.Parts, l.Manifest.Rows = append(l.Manifest.Parts, p), l.Manifest.Rows+p.Rows
				continue
			}
			old, err := table.IDs(b.t.Context(), p)
			if err != nil {
				b.t.Fatal(err)
			}
			l.Replaced = l.Replaced.Union(old)
		}
	}
	return l
}

// carry takes the lease by the bench's own connection, and carries a load out.
func (b *bench) carry(table *Table, l load.TableLoad) (load.TableChange, error) {
	b.t.Helper()
	lease, err := b.table.Acquire(b.t.Context(), "", load.Holder{RunID: l.Manifest.RunID})
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = lease.Release(context.Background()) }()
	return table.Load(b.t.Context(), l)
}

// withLists adds an exploded list to a load.
func withLists(l load.TableLoad, colours map[int64][]string) load.TableLoad {
	schema := loadtest.Columns("id", arrow.PrimitiveTypes.Int64, "position", arrow.PrimitiveTypes.Int64, "colour", arrow.BinaryTypes.String)
	l.Manifest.Schema = append(slices.Clone(l.Manifest.Schema), load.Column{Name: "colours", From: "item:3", Explode: true})
	l.Rows = append(l.Rows, load.TableRows{
		List: "colours", Key: []string{"position"}, Schema: schema, Columns: []load.Column{{Name: "id", From: "result_id"}, {Name: "position", From: "item:3"}, {Name: "colour", From: "item:3"}},
		Each: func(_ context.Context, visit func(arrow.RecordBatch) error) error {
			build := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			for id, list := range colours {
				for i, colour := range list {
					build.Field(0).(*array.Int64Builder).Append(id)
					build.Field(1).(*array.Int64Builder).Append(int64(i + 1))
					build.Field(2).(*array.StringBuilder).Append(colour)
				}
			}
			return visit(build.NewRecordBatch())
		},
	})
	return l
}

// load loads the results of a part.
func (b *bench) load(of answers, part string) load.TableChange {
	b.t.Helper()
	change, err := b.carry(b.table, b.loadOf(b.table, of, part, false))
	if err != nil {
		b.t.Fatal(err)
	}
	return change
}

// holds checks the table's rows.
func (b *bench) holds(want string) {
	b.t.Helper()
	if got := strings.ReplaceAll(b.query("SELECT id || ' ' || answer FROM forms.feedback ORDER BY id"), "\n", ", "); got != want {
		b.t.Errorf("the table holds %q, want %q", got, want)
	}
}
