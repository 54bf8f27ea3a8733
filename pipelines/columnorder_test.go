package pipelines_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// orderOf are the names of a manifest's columns.
func orderOf(m *load.Manifest) string {
	names := make([]string, 0, len(m.Schema))
	for _, c := range m.Schema {
		names = append(names, c.Name)
	}
	return strings.Join(names, ",")
}

// columnsNamed is a schema of the form of growingForm, in the order given.
func columnsNamed(unknown schemas.Unknown, names ...string) *schemas.Schema {
	from := map[string]schemas.Source{"id": {Kind: schemas.FromResultID}}
	for i, name := range []string{"a", "b", "c", "d"} {
		from[name] = schemas.Source{Kind: schemas.FromItem, ID: string(rune('1' + i))}
	}
	from["item_4"] = from["d"]
	s := &schemas.Schema{Unknown: unknown}
	for _, name := range names {
		kind := schemas.Type{Kind: schemas.String}
		if name == "id" {
			kind.Kind = schemas.Int64
		}
		s.Columns = append(s.Columns, schemas.Column{Name: name, From: from[name], Type: kind})
	}
	return s
}

// growingForm has four days of answers to four questions.
func growingForm() *formservice.Form {
	items := make([]formservice.Item, 0, 4)
	for i := range 4 {
		items = append(items, formservice.Item{ID: string(rune('1' + i)), Index: i + 1, Label: string(rune('A' + i))})
	}
	results := make([]formservice.Result, 0, 4)
	for day := range 4 {
		n := string(rune('1' + day))
		r := formservice.Result{ID: int64(1 + day), Metas: []formservice.Meta{
			{ID: "result_status", Value: "Complete"}, {ID: "date_finish", Value: "2026-01-0" + n + " 10:00:00"},
		}}
		for i := range 4 {
			r.Items = append(r.Items, formservice.Answer{ID: string(rune('1' + i)), Values: []string{string(rune('a'+i)) + n}})
		}
		results = append(results, r)
	}
	return formservice.NewForm("form1", items, results)
}

// TestOrderOfADataset holds that a dataset's columns stay where they are,
// whatever order the schema gives later, so that parts can be read by position;
// a single file beside it, and --full, follow the schema.
func TestOrderOfADataset(t *testing.T) {
	const added = "id,a,b,c,result_status,date_finish,item_4"
	for _, c := range []struct {
		name       string
		one, two   *schemas.Schema
		full       bool
		want, file string
		parts      []string
	}{
		{
			name: "reordered", one: columnsNamed(schemas.UnknownIgnore, "id", "a", "b"), two: columnsNamed(schemas.UnknownIgnore, "b", "id", "a"),
			want: "id,a,b", file: "b,id,a", parts: []string{"id,a,b", "id,a,b"},
		},
		{
			name: "one in the middle", one: columnsNamed(schemas.UnknownIgnore, "id", "a", "b"), two: columnsNamed(schemas.UnknownIgnore, "id", "c", "b", "d", "a"),
			want: "id,a,b,c,d", file: "id,c,b,d,a", parts: []string{"id,a,b", "id,a,b,c,d"},
		},
		{
			name: "before one that was added", one: columnsNamed(schemas.UnknownAdd, "id", "a", "b", "c"), two: columnsNamed(schemas.UnknownAdd, "id", "item_4", "a", "b", "c"),
			want: added, file: "id,item_4,a,b,c,result_status,date_finish", parts: []string{added, added},
		},
		{
			name: "left out", one: columnsNamed(schemas.UnknownIgnore, "id", "a", "b"), two: columnsNamed(schemas.UnknownIgnore, "d", "b", "id"),
			want: "id,a,b,d", file: "d,b,id", parts: []string{"id,a,b", "id,b,d"},
		},
		{
			name: "full", one: columnsNamed(schemas.UnknownIgnore, "id", "a", "b"), two: columnsNamed(schemas.UnknownIgnore, "b", "id", "c", "a"), full: true,
			want: "b,id,c,a", file: "b,id,c,a", parts: []string{"b,id,c,a", "b,id,c,a"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, growingForm())
			run := func(schema *schemas.Schema, from, to string, full bool) error {
				def := w.definition(definition.Output{Path: "days/", Format: "csv", Partition: definition.PartitionDay}, definition.Output{Path: "form1.csv", Format: "csv"})
				def.File, def.Schema = w.path("definition.yaml"), schema
				def.Extract.From, def.Extract.To = extracttest.Wall(from), extracttest.Wall(to)
				o := options()
				o.Full = full
				_, err := pipelines.Run(t.Context(), def, o)
				return err
			}
			if err := run(c.one, "2026-01-01", "2026-01-03", false); err != nil {
				t.Fatal(err)
			}
			err := run(c.two, "2026-01-03", "2026-01-05", c.full)
			if err != nil {
				t.Fatal(err)
			}
			m := readManifest(t, w.path("days/_manifest.json"))
			if got := orderOf(m); got != c.want {
				t.Errorf("the dataset has %s, want %s", got, c.want)
			}
			if got := headerOf(t, w.path("form1.csv")); got != c.file {
				t.Errorf("the file has %s, want %s", got, c.file)
			}
			for i, p := range m.Parts {
				want := c.parts[min(i/2, len(c.parts)-1)]
				if got := headerOf(t, filepath.Join(w.path("days"), p.Path)); got != want {
					t.Errorf("%s has %s, want %s", p.Path, got, want)
				}
			}
		})
	}
}

func headerOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(string(data), "\n")
	return header
}
