package output

import (
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// codebookSource is where a codebook's data come from.
func codebookSource() *definition.Definition {
	zone := time.FixedZone("America/Chicago", -6*3600)
	return &definition.Definition{Name: "feedback", Source: definition.Source{Account: "acme", Zone: zone}}
}

func itemOf(id string) schemas.Source { return schemas.Source{Kind: schemas.FromItem, ID: id} }

func sampleFacts() (*schemas.Schema, codebookFacts) {
	s := &schemas.Schema{Columns: []schemas.Column{
		{Name: "id", From: schemas.Source{Kind: schemas.FromResultID}, Type: schemas.Type{Kind: schemas.Int64}},
		{Name: "born", From: itemOf("1"), OnError: schemas.OnErrorSetNull, Required: true, Reading: schemas.Reading{Formats: []string{"MM/DD/YYYY"}}},
		{Name: "colours", From: itemOf("2"), ListAs: schemas.ListColumns, Choices: []string{"red", "green"}},
		{Name: "mail", From: itemOf("3"), PII: schemas.PII{Kind: schemas.PIIHMAC}},
	}}
	return s, codebookFacts{
		columns: []load.Column{
			{Name: "id", Type: "int64", From: "result_id"},
			{Name: "born", Type: "date", From: "item:1", Label: "=Born, or \"adopted\"", ItemType: "date", Index: 1},
			{Name: "colours", Type: "list<string>", From: "item:2", Label: "Colours <liked>", Choices: []string{"=blue", "red", "green"}, ItemType: "checkbox", Index: 2},
			{Name: "mail", Type: "string", From: "item:3", Label: "Mail", PII: "hmac(1f2e3d4c)"},
			{Name: "item_4", Type: "string", From: "item:4", Label: "Why?\nTell us"},
		},
		stats: transform.Stats{Rows: 5, Seen: map[schemas.Source]transform.Seen{
			{Kind: schemas.FromResultID}: {Filled: 5},
			itemOf("1"):                  {Filled: 3},
			itemOf("2"):                  {Filled: 4, Choices: map[string]int64{"red": 3, "=blue": 2}},
			itemOf("3"):                  {Filled: 5, Choices: map[string]int64{"a@example.com": 5}}, // should never be
			itemOf("4"):                  {Filled: 1, Many: true},
		}},
	}
}

const sampleTable = "\uFEFFcolumn,type,from,label,item_type,choices,rows,nulls,pii\r\n" +
	"id,int64,result_id,,,,5,0,\r\n" +
	"born,date,item:1,\"'=Born, or \"\"adopted\"\"\",date,,5,2,\r\n" +
	"colours,list<string>,item:2,Colours <liked>,checkbox,'=blue (2) | red (3) | green (0),5,1,\r\n" +
	"mail,string,item:3,Mail,,,5,0,hmac(1f2e3d4c)\r\n" +
	"item_4,string,item:4,\"Why?\nTell us\",,too many to list,5,4,\r\n"

const sampleSchema = `{
  "version": 1,
  "pipeline": "feedback",
  "form": "form1",
  "account": "acme",
  "timezone": "America/Chicago",
  "rows": 5,
  "columns": [
    {"name": "id", "type": "int64", "from": "result_id", "label": "",
      "rows": 5, "nulls": 0, "nullable": false, "on_error": "reject"},
    {"name": "born", "type": "date", "from": "item:1", "label": "=Born, or \"adopted\"",
      "item_type": "date", "index": 1, "rows": 5, "nulls": 2, "nullable": false, "on_error": "set_null", "format": ["MM/DD/YYYY"]},
    {"name": "colours", "type": "list<string>", "from": "item:2", "label": "Colours <liked>",
      "item_type": "checkbox", "index": 2, "list_as": "columns",
      "choices": [{"value": "=blue", "count": 2}, {"value": "red", "count": 3}, {"value": "green", "count": 0}],
      "rows": 5, "nulls": 1, "nullable": true, "on_error": "reject"},
    {"name": "mail", "type": "string", "from": "item:3", "label": "Mail", "pii": "hmac(1f2e3d4c)",
      "rows": 5, "nulls": 0, "nullable": true, "on_error": "reject"},
    {"name": "item_4", "type": "string", "from": "item:4", "label": "Why?\nTell us", "many_choices": true,
      "rows": 5, "nulls": 4, "nullable": true, "on_error": "set_null"}
  ]
}
`

func TestCodebookContent(t *testing.T) {
	s, facts := sampleFacts()
	b := newCodebook(codebookSource(), "form1", s, facts)
	if got := string(b.table()); got != sampleTable {
		t.Errorf("the table is\n%q, want\n%q", got, sampleTable)
	}
	data, err := b.encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := withoutBlanks(string(data)), withoutBlanks(sampleSchema); got != want {
		t.Errorf("the schema is\n%s, want\n%s", got, want)
	}
	if !strings.Contains(string(data), "Colours <liked>") || !strings.HasSuffix(string(data), "}\n") {
		t.Error("the schema is not for people")
	}
}

func withoutBlanks(s string) string { return strings.Join(strings.Fields(s), "") }

// TestCodebookRemembers: what earlier runs saw is listed with a count of 0,
// except where it must not be.
func TestCodebookRemembers(t *testing.T) {
	earlier := func(pii string, many bool, values ...string) *codebook {
		c := bookColumn{From: "item:2", PII: pii, ManyChoices: many}
		for _, v := range values {
			c.Choices = append(c.Choices, bookChoice{v, 9})
		}
		return &codebook{Version: 1, Pipeline: "feedback", Form: "form1", Account: "acme", Columns: []bookColumn{c}}
	}
	lots := make([]string, transform.MostChoices)
	for i := range lots {
		lots[i] = fmt.Sprint("value ", i)
	}
	other := earlier("", false, "old")
	other.Form = "form2"
	for _, c := range []struct {
		name    string
		earlier *codebook
		pii     string
		want    string
	}{
		{"a value of before", earlier("", false, "old", "red"), "", "[{=blue 2} {red 3} {green 0} {old 0}] false"},
		{"another form's", other, "", "[{=blue 2} {red 3} {green 0}] false"},
		{"many before", earlier("", true), "", "[] true"},
		{"many together", earlier("", false, lots...), "", "[] true"},
		{"a rule since", earlier("", false, "old"), "redact", "[] false"},
		{"a rule before", earlier("redact", false, "old"), "", "[{=blue 2} {red 3} {green 0}] false"},
	} {
		s, facts := sampleFacts()
		facts.columns[2].PII = c.pii
		b := newCodebook(codebookSource(), "form1", s, facts)
		b.remember(c.earlier)
		if got := fmt.Sprint(b.Columns[2].Choices, b.Columns[2].ManyChoices); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestCodebookCellsFit(t *testing.T) {
	many := make([]string, 500)
	for i := range many {
		many[i] = strings.Repeat("𝄞", 100) // two units each
	}
	cell := joinedCell(many)
	if n := len(utf16.Encode([]rune(cell))); n > 32_767 || n < 32_000 || !strings.HasSuffix(cell, " | … and 339 more") {
		t.Errorf("the cell has %d units and ends %q", n, cell[len(cell)-30:])
	}
	for s, want := range map[string]string{
		"=1": "'=1", "+1": "'+1", "-x": "'-x", "@x": "'@x", "\tx": "\"'\tx\"", "\rx": "\"'\rx\"", "\n=1": "\"'\n=1\"", " =1": "' =1", "\u00a0=1": "'\u00a0=1",
		"＝1": "'＝1", "00123": "00123", "-5": "-5", "a;=1": `"a;=1"`, "a\tb": "\"a\tb\"", "5": "5", "3 apples": "3 apples", "": "",
	} {
		if got := tableField(s); got != want {
			t.Errorf("%q is written as %q, not %q", s, got, want)
		}
	}
}

// negative is a plain negative number, which no spreadsheet takes for a formula.
var negative = regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?$`)

// FuzzCodebookTable: whatever texts a form has, the table has its rows and
// fields, and no cell is a formula.
func FuzzCodebookTable(f *testing.F) {
	f.Add("=1+1", "red")
	f.Add("-\"x\"\r\n", ",")
	f.Add("\xff\uFEFF", "\t")
	f.Add("-0", "-1.5")
	f.Fuzz(func(t *testing.T, label, choice string) {
		s, facts := sampleFacts()
		facts.columns[1].Label = label
		facts.stats.Seen[itemOf("2")] = transform.Seen{Filled: 1, Choices: map[string]int64{choice: 1}}
		b := newCodebook(codebookSource(), "form1", s, facts)
		table := strings.TrimPrefix(string(b.table()), "\uFEFF")
		rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
		if err != nil || len(rows) != len(facts.columns)+1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		want := strings.ReplaceAll(label, "\r\n", "\n") // as encoding/csv reads it
		if got := rows[2][3]; got != want && got != "'"+want {
			t.Errorf("the label %q is read as %q", label, got)
		}
		for _, row := range rows {
			for _, cell := range row {
				if cell != "" && strings.ContainsRune("=+-@\t", rune(cell[0])) && !negative.MatchString(cell) {
					t.Errorf("%q is a formula", cell)
				}
			}
		}
	})
}

// TestWriteReplacesItsOwn, also where it was cut short, and leaves the files of others as
// they are, with what lies beside them.
func TestWriteReplacesItsOwn(t *testing.T) {
	place, _ := definition.CodebookPlaceOf(definition.Output{Path: "out/f/", Format: "csv"}, "out/f/", nil)
	s, facts := sampleFacts()
	b := newCodebook(codebookSource(), "form1", s, facts)
	schema, err := b.encode()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{place.Schema(): string(schema), place.Table(): string(b.table())}
	for _, c := range []struct {
		name, data string
		foreign    bool
	}{
		{place.Schema(), "", false},
		{place.Schema(), "\n", false},
		{place.Schema(), string(schema[:len(schema)/2]), false},
		{place.Schema(), string(schema[:60]), false},
		{place.Table(), "", false},
		{place.Table(), string(b.table()[:60]), false},
		{place.Schema(), `{"mine": true}`, true},
		{place.Schema(), `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}`, true},
		{place.Schema(), `{"version": 1, "name": "form1", "columns": [{"name": "id", "from": "result_id", "type": "int64"}]}`, true}, // a schema file
		{place.Schema(), `[1, 2]`, true},
		{place.Schema(), `{`, false},
		{place.Schema(), "half of {\n  \"version\": 1,\n  \"pipeline\": \"x", true},
		{place.Table(), "column,type\nid,int64\n", true},
		{place.Table(), "my own notes", true},
	} {
		d, err := local.New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range ours {
			if name == c.name {
				data = c.data
			} else if c.foreign {
				data += " "
			}
			if err := d.Put(t.Context(), name, []byte(data), load.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
		err = writeCodebook(t.Context(), d, place, newCodebook(codebookSource(), "form1", s, facts), true)
		if _, foreign := errors.AsType[*definition.Fault](err); foreign != c.foreign || !foreign && err != nil {
			t.Errorf("%q in %s: %v", c.data, c.name, err)
		}
		for name, want := range ours {
			if c.foreign && name == c.name {
				want = c.data
			} else if c.foreign {
				want += " "
			}
			if got, _, err := d.Get(t.Context(), name); err != nil || string(got) != want {
				t.Errorf("%q in %s: %s holds %q, %v", c.data, c.name, name, got, err)
			}
		}
	}
}
