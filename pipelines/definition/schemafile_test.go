package definition

import (
	"cmp"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/schemas"
)

const contractSchema = `version: 1
name: feedback
unknown: add            # add | ignore | fail
max_rejects: 100
empty: keep
columns:
  - {name: id,        from: result_id,            type: int64}
  - {name: status,    from: "meta:result_status", type: string}
  - {name: finished,  from: "meta:date_finish",   type: timestamp}
  - {name: price,     from: "item:4",             type: "decimal(12,2)", on_error: reject}
  - {name: born,      from: "item:105",           type: date, on_error: set_null}
  - {name: colours,   from: "item:206",           type: "list<string>"}
  - {name: matrix,    from: "item:353-0-0",       type: bool, on_error: fail}
  - {name: ratio,     from: item:7,               type: float64, label: ""}
`

func TestContractSchema(t *testing.T) {
	s, err := parseSchema("feedback.yaml", []byte(contractSchema))
	if err != nil {
		t.Fatal(err)
	}
	item := func(id string) schemas.Source { return schemas.Source{Kind: schemas.FromItem, ID: id} }
	meta := func(id string) schemas.Source { return schemas.Source{Kind: schemas.FromMeta, ID: id} }
	kind := func(k schemas.TypeKind) schemas.Type { return schemas.Type{Kind: k} }
	want := &schemas.Schema{
		Name: "feedback", Unknown: schemas.UnknownAdd, MaxRejects: 100, Empty: schemas.EmptyKeep,
		Columns: []schemas.Column{
			{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: kind(schemas.Int64), OnError: schemas.OnErrorReject},
			{Name: "status", From: meta("result_status"), Type: kind(schemas.String), OnError: schemas.OnErrorReject},
			{Name: "finished", From: meta("date_finish"), Type: kind(schemas.Timestamp), OnError: schemas.OnErrorReject},
			{Name: "price", From: item("4"), Type: schemas.Type{Kind: schemas.Decimal, Precision: 12, Scale: 2}, OnError: schemas.OnErrorReject},
			{Name: "born", From: item("105"), Type: kind(schemas.Date), OnError: schemas.OnErrorSetNull},
			{Name: "colours", From: item("206"), Type: schemas.ListOf(kind(schemas.String)), OnError: schemas.OnErrorReject},
			{Name: "matrix", From: item("353-0-0"), Type: kind(schemas.Bool), OnError: schemas.OnErrorFail},
			{Name: "ratio", From: item("7"), Type: kind(schemas.Float64), OnError: schemas.OnErrorReject},
		},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

func TestSchemaDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.yaml")
	write(t, file, "version: 1\n")
	s, err := LoadSchema(file, nil)
	want := &schemas.Schema{Name: "orders", Unknown: schemas.UnknownAdd, MaxRejects: schemas.DefaultMaxRejects, Empty: schemas.EmptyKeep}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := LoadSchema(file+"x", nil); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v", err)
	}
}

// TestOtherColumn: other: column brings the column of typed texts, whose rules are those of the
// item's column, and which a schema file may list as it would be.
func TestOtherColumn(t *testing.T) {
	s, err := parseSchema("s.yaml", []byte(`version: 1
columns:
  - {name: a, from: "item:1", type: string, other: column, choices: [x], on_error: fail}
  - {name: colours, from: "item:206", type: "list<string>", pii: drop, other: column, label: Colours}
  - {name: b, from: "item:2", type: string, other: inline}
  - {name: typed, from: "other:9", type: string}
  - {name: c, from: "item:9", type: string, choices: [x], pii: redact}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := schemas.Column{
		Name: "colours_other", From: schemas.Source{Kind: schemas.FromOther, ID: "206"}, Type: schemas.Type{Kind: schemas.String},
		Label: "Colours (other)", PII: schemas.PII{Kind: schemas.PIIDrop}, OnError: schemas.OnErrorReject,
	}
	if len(s.Columns) != 7 || s.Columns[5].PII.Kind != schemas.PIIRedact || s.Columns[1].OnError != schemas.OnErrorFail || !reflect.DeepEqual(s.Columns[3], want) || s.Columns[4].Other != schemas.OtherInline {
		t.Errorf("columns %+v", s.Columns)
	}
	roundTrip(t, s)
}

func TestSchemaExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../schemas/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range files {
		s, err := LoadSchema(file, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		roundTrip(t, s)
	}
}

func TestBadSchemas(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no version":     {"name: x\n", []string{"s.yaml:1:1: version: the required setting is missing; add version:"}},
		"version 2":      {"version: 2\n", []string{"s.yaml:1:10: version: "}},
		"unknown key":    {"version: 1\ncolums: []\n", []string{"s.yaml:2:1: colums: the setting is not known; did you mean columns?"}},
		"many rejects":   {"version: 1\nmax_rejects: 3000000000\n", []string{"s.yaml:2:14: max_rejects: "}},
		"columns a map":  {"version: 1\ncolumns:\n  id: int64\n", []string{"s.yaml:2:1: columns: a list is expected"}},
		"column is text": {"version: 1\ncolumns: [id]\n", []string{"s.yaml:2:11: columns[0]: a group of keys is expected"}},
		"everything at once": {
			"version: 1\ncolumns:\n  - {name: a, from: result_id, type: int64}\n  - name: A\n    from: 'item:1'\n    type: strnig\n  - name: b\n    from: 'item:1'\n    type: list<list<string>>\n  - {from: nowhere, type: string, on_error: skip}\n",
			[]string{
				`s.yaml:4:11: columns[1].name: the name "A" differs from "a" (the column from result_id) only in upper and lower case`,
				`s.yaml:6:11: columns[1].type: unknown type "strnig"; use string`,
				`s.yaml:8:11: columns[2].from: column "A" has the source item:1 already`,
				`s.yaml:9:11: columns[2].type: `,
				`s.yaml:10:5: columns[3].name: the required setting is missing`,
				`s.yaml:10:12: columns[3].from: unknown source "nowhere"`,
				`s.yaml:10:45: columns[3].on_error: `,
			},
		},
		"result id as a date": {"version: 1\ncolumns: [{name: a, from: result_id, type: date}]\n", []string{"s.yaml:2:44: columns[0].type: the result's id is a whole number"}},
		"pii":                 {"version: 1\ncolumns: [{name: a, from: result_id, type: int64, pii: drop}]\n", []string{"columns[0].pii: the result's id cannot be hidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseSchema("s.yaml", []byte(c.text))
			var wrong *Error
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("got\n%v\nwant\n%v", err, strings.Join(c.want, "\n"))
			}
			for i, want := range c.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("got  %s\nwant %s", lines[i], want)
				}
			}
		})
	}
}

// roundTrip writes a schema and reads it back equal, the defaults filled in.
func roundTrip(t *testing.T, s *schemas.Schema) {
	t.Helper()
	text, err := FormatSchema(s, Notes{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseSchema(s.Name+".yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want := *s
	want.Unknown, want.Empty = cmp.Or(s.Unknown, schemas.UnknownAdd), cmp.Or(s.Empty, schemas.EmptyKeep)
	want.Columns = nil
	for _, c := range s.Columns {
		c.OnError, c.Inferred = cmp.Or(c.OnError, schemas.OnErrorReject), false
		want.Columns = append(want.Columns, c)
	}
	if !reflect.DeepEqual(got, &want) {
		t.Errorf("got  %+v\nwant %+v\n%s", got, &want, text)
	}
}

func TestFormatSchema(t *testing.T) {
	s := &schemas.Schema{
		Name: "feedback", MaxRejects: 0, MaxColumns: 9,
		Columns: []schemas.Column{
			{Name: "result_id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}, Inferred: true},
			{Name: "no", From: schemas.Source{Kind: schemas.FromItem, ID: "353-0-0"}, Type: schemas.ListOf(schemas.Type{Kind: schemas.String}), Label: "What's \"up\"?\r\n <b>", OnError: schemas.OnErrorSetNull},
		},
	}
	text, err := FormatSchema(s, Notes{Head: []string{"a note"}, Columns: [][]string{nil, {"of a column"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `# a note
version: 1
name: feedback
unknown: add
max_rejects: 0
max_columns: 9
empty: keep
columns:
  - {name: result_id, from: result_id, type: int64}
  # of a column
  - {name: "no", from: "item:353-0-0", type: "list<string>", on_error: set_null, label: "What's \"up\"?\r\n <b>"}
`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	roundTrip(t, s)
	s.Columns[1].Label = "\xff"
	if _, err := FormatSchema(s, Notes{}); err == nil || !strings.Contains(err.Error(), "not valid UTF-8") {
		t.Errorf("got %v", err)
	}
	s.Columns[1].Label = "\x00"
	if _, err := FormatSchema(s, Notes{}); err == nil || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("got %v", err)
	}
	s.Columns[1].Type = schemas.Type{}
	if _, err := FormatSchema(s, Notes{}); err == nil || !strings.Contains(err.Error(), `write schema "feedback": `) {
		t.Errorf("got %v", err)
	}
}

func FuzzFormatSchema(f *testing.F) {
	for _, seed := range []string{"colours", "true", "no", "~", "12", "1e3", "012", ".5", "a: b", "a #b", "- a", "{a}", "[", "'", `"`, `\`, "a\nb\r\n", "\t", " a ", "é\u2028\u2029\u0085\ufeff", "😀\u202e", "\u0001\u007f", "<&>", "|", "%", "@`", "*a", "&a", "!a", "?", "\U0010ffff", "\ufffd"} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, id, label string) {
		s := &schemas.Schema{Name: name, MaxRejects: 7, Columns: []schemas.Column{
			{Name: name, From: schemas.Source{Kind: schemas.FromItem, ID: id}, Type: schemas.Type{Kind: schemas.String}, Label: label, OnError: schemas.OnErrorFail},
		}}
		if name == "" || id == "" || s.Validate() != nil {
			return
		}
		for _, text := range []string{name, id, label} {
			if utf8.ValidString(text) && !strings.ContainsRune(text, 0) {
				continue
			}
			if _, err := FormatSchema(s, Notes{}); err == nil {
				t.Errorf("%q is written", text)
			}
			return
		}
		roundTrip(t, s)
	})
}

// FuzzNotedSchema: whatever a label or a note holds, the file reads as if it
// had no comments, and no note leaves its line.
func FuzzNotedSchema(f *testing.F) {
	for _, s := range append(formservice.Hostile(), "a\nname: x", "\r  - {", "\u0085x: 1", "\u2028", "#", "\xff", "\x00", "---", "...", "%YAML 1.1") {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, label, note string) {
		s := &schemas.Schema{Name: "x", Columns: []schemas.Column{
			{Name: "a", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.String}, Label: label},
			{Name: "b", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		}}
		plain, err := FormatSchema(s, Notes{})
		if err != nil {
			return // a label that YAML cannot hold
		}
		noted, err := FormatSchema(s, Notes{Head: []string{note, label}, Columns: [][]string{{note, label}, {note}}})
		if err != nil {
			t.Fatal(err)
		}
		var without []string
		for line := range strings.Lines(string(noted)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "#") {
				without = append(without, line)
			}
		}
		if strings.Join(without, "") != string(plain) {
			t.Errorf("with comments\n%q\nwithout\n%q", noted, plain)
		}
		read := func(data []byte) *schemas.Schema {
			got, err := parseSchema("x.yaml", data)
			if err != nil {
				t.Fatalf("%v in %q", err, data)
			}
			return got
		}
		if a, b := read(plain), read(noted); !reflect.DeepEqual(a, b) {
			t.Errorf("%+v is read with comments, %+v without", b, a)
		}
	})
}
