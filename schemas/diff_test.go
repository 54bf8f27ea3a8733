package schemas

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// columnsOf reads columns from "name from type[ label]", separated by ";".
func columnsOf(t testing.TB, text string) []Column {
	t.Helper()
	var columns []Column
	for part := range strings.SplitSeq(text, ";") {
		words := strings.SplitN(strings.TrimSpace(part), " ", 4)
		if len(words) < 3 {
			continue
		}
		from, err := ParseSource(words[1])
		if err != nil {
			t.Fatal(err)
		}
		typ, err := ParseType(words[2])
		if err != nil {
			t.Fatal(err)
		}
		c := Column{Name: words[0], From: from, Type: typ}
		if len(words) == 4 {
			c.Label = words[3]
		}
		columns = append(columns, c)
	}
	return columns
}

// line is a change on one line.
func (c Change) line() string {
	s := fmt.Sprintf("%s %s", c.Kind, c.Column)
	if c.Key != "" {
		s += " " + c.Key
	}
	s += fmt.Sprintf(" [%s] [%s]", c.Was, c.Is)
	if c.Breaking {
		s += " breaks"
	}
	return s
}

func lines(changes []Change) string {
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = c.line()
	}
	return strings.Join(list, "\n")
}

func TestDiffColumns(t *testing.T) {
	const base = "id result_id int64; name item:1 string Full name; age item:2 int64; tags item:3 list<string>"
	for _, c := range []struct{ name, was, is, want string }{
		{"nothing", base, base, ""},
		{"added", base, base + "; mail item:9 string E-mail", "added mail [] [string]"},
		{"removed", base, "id result_id int64; age item:2 int64; tags item:3 list<string>", "removed name [string] [] breaks"},
		{
			"all else", base, "id result_id string; tags item:3 string; full_name item:1 string Name; age item:2 decimal(12,2)",
			"retyped id type [int64] [string] breaks\n" +
				"retyped tags type [list<string>] [string] breaks\nreordered tags [after age] [after id]\n" +
				"renamed full_name [name] [full_name] breaks\nrelabelled full_name [Full name] [Name]\nreordered full_name [after id] [after tags]\n" +
				"retyped age type [int64] [decimal(12,2)] breaks",
		},
		{"a label that one side does not know", "a item:1 string", "a item:1 string Some label", ""},
		{"another source under the name", "a item:1 string", "a item:2 string", "added a [] [string]\nremoved a [string] [] breaks"},
		{"inserted in the middle", "a item:1 string; b item:2 string", "a item:1 string; x item:3 string; b item:2 string", "added x [] [string]"},
		{"the last comes first", "a item:1 string; b item:2 string; c item:3 string", "c item:3 string; a item:1 string; b item:2 string", "reordered c [after b] [first]\nreordered a [first] [after c]"},
		{"the first goes last", "a item:1 string; b item:2 string; c item:3 string", "b item:2 string; c item:3 string; a item:1 string", "reordered b [after a] [first]\nreordered a [first] [after c]"},
		{"several are removed in their order", "a item:1 string; b item:2 string; c item:3 string", "", "removed a [string] [] breaks\nremoved b [string] [] breaks\nremoved c [string] [] breaks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Diff(&Schema{Columns: columnsOf(t, c.was)}, &Schema{Columns: columnsOf(t, c.is)})
			if lines(got) != c.want {
				t.Errorf("got\n%s\nwant\n%s", lines(got), c.want)
			}
		})
	}
}

func TestDiffRules(t *testing.T) {
	for _, c := range []struct {
		name    string
		was, is func(*Column)
		want    string
	}{
		{"nullable again", func(c *Column) { c.Required = true }, nil, "rule c nullable [false] [true] breaks"},
		{"required now", nil, func(c *Column) { c.Required = true }, "rule c nullable [true] [false]"},
		{"on_error", nil, func(c *Column) { c.OnError = OnErrorFail }, "rule c on_error [reject] [fail]"},
		{"on_error spelled out", nil, func(c *Column) { c.OnError = OnErrorReject }, ""},
		{"pii", nil, func(c *Column) { c.PII = PII{Kind: PIITruncate, Keep: 3} }, "rule c pii [none] [truncate(3)] breaks"},
		{"pii keeps more", func(c *Column) { c.PII = PII{PIITruncate, 3} }, func(c *Column) { c.PII = PII{PIITruncate, 4} }, "rule c pii [truncate(3)] [truncate(4)] breaks"},
		{"other", nil, func(c *Column) { c.Other = OtherInline }, "rule c other [default] [inline] breaks"},
		{"list_as", nil, func(c *Column) { c.ListAs = ListJSON }, "rule c list_as [joined] [json] breaks"},
		{"choices go on", func(c *Column) { c.Choices = []string{"a"} }, func(c *Column) { c.Choices = []string{"a", "b"} }, `rule c choices ["a"] ["a", "b"]`},
		{"choices in another order", func(c *Column) { c.Choices = []string{"a", "b"} }, func(c *Column) { c.Choices = []string{"b", "a"} }, `rule c choices ["a", "b"] ["b", "a"] breaks`},
		{"explode", nil, func(c *Column) { c.Explode = true }, "rule c explode [false] [true]"},
		{"explode no more", func(c *Column) { c.Explode = true }, nil, "rule c explode [true] [false] breaks"},
		{"a format", nil, func(c *Column) { c.Reading.Formats = []string{"MM/DD/YYYY"} }, `retyped c format [default] ["MM/DD/YYYY"] breaks`},
		{"one more format", func(c *Column) { c.Reading.Formats = []string{"A"} }, func(c *Column) { c.Reading.Formats = []string{"A", "B"} }, `retyped c format ["A"] ["A", "B"]`},
		{"another format first", func(c *Column) { c.Reading.Formats = []string{"A"} }, func(c *Column) { c.Reading.Formats = []string{"B", "A"} }, `retyped c format ["A"] ["B", "A"] breaks`},
		{"words", func(c *Column) { c.Reading.True, c.Reading.False = []string{"ja"}, []string{"nein"} }, func(c *Column) { c.Reading.True = []string{"ja", "yes"} }, `retyped c true_values ["ja"] ["ja", "yes"]` + "\n" + `retyped c false_values ["nein"] [default] breaks`},
		{"separators", nil, func(c *Column) { c.Reading.Decimal, c.Reading.Group = ",", "." }, "retyped c decimal_separator [\".\"] [\",\"] breaks\nretyped c group_separator [default] [\".\"] breaks"},
		{"the point spelled out", nil, func(c *Column) { c.Reading.Decimal = "." }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			make1 := func(change func(*Column)) *Schema {
				s := &Schema{Columns: columnsOf(t, "c item:1 string")}
				if change != nil {
					change(&s.Columns[0])
				}
				return s
			}
			if got := lines(Diff(make1(c.was), make1(c.is))); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestDiffOfTheWholeSchema(t *testing.T) {
	key := func(text string) HMACKey {
		k, err := NewHMACKey([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	hashed := Column{Name: "h", From: mustSource(t, "item:1"), Type: Type{Kind: String}, PII: PII{Kind: PIIHMAC}}
	one, other := key("0123456789abcdef"), key("fedcba9876543210")
	for _, c := range []struct {
		name    string
		was, is Schema
		want    string
	}{
		{"defaults spelled out", Schema{}, Schema{Unknown: UnknownAdd, Empty: EmptyKeep}, ""},
		{"unknown", Schema{}, Schema{Unknown: UnknownFail}, "rule  unknown [add] [fail] breaks"},
		{"unknown is laxer", Schema{Unknown: UnknownFail}, Schema{Unknown: UnknownIgnore}, "rule  unknown [fail] [ignore]"},
		{"others", Schema{MaxRejects: 1}, Schema{Empty: EmptyAsNull}, "rule  max_rejects [1] [0]\nrule  empty [keep] [as_null] breaks"},
		{"added to a strict one", Schema{Unknown: UnknownFail}, Schema{Unknown: UnknownFail, Columns: []Column{hashed}}, "added h [] [string] breaks"},
		{"another key", Schema{Columns: []Column{hashed}, HMACKey: one}, Schema{Columns: []Column{hashed}, HMACKey: other}, "rule  hmac_key [" + one.ID() + "] [" + other.ID() + "] breaks"},
		{"the same key from elsewhere", Schema{Columns: []Column{hashed}, HMACKey: one, HMACReference: "${env:A}"}, Schema{Columns: []Column{hashed}, HMACKey: one, HMACReference: "${env:B}"}, ""},
		{"keys that were not read", Schema{Columns: []Column{hashed}, HMACReference: "${env:A}"}, Schema{Columns: []Column{hashed}, HMACKey: one}, "rule  hmac_key [${env:A}] [default] breaks"},
	} {
		if got := lines(Diff(&c.was, &c.is)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestChangeAsJSON holds the keys that programs read.
func TestChangeAsJSON(t *testing.T) {
	data, err := json.Marshal(Change{Kind: ColumnAdded, From: "item:1", Column: "c", Key: "k", Was: "w", Is: "i", Label: "l", Count: 2, Breaking: true})
	if want := `{"kind":"added","from":"item:1","column":"c","key":"k","was":"w","is":"i","label":"l","count":2,"breaking":true}`; err != nil || string(data) != want {
		t.Errorf("%s (%v), want %s", data, err, want)
	}
	if data, err = json.Marshal(Change{Kind: ColumnRemoved}); err != nil || string(data) != `{"kind":"removed","breaking":false}` {
		t.Errorf("%s (%v)", data, err)
	}
}

// random makes a schema of up to n columns of few sources.
func random(r *rand.Rand, n int) *Schema {
	s := &Schema{Unknown: []Unknown{"", UnknownAdd, UnknownIgnore, UnknownFail}[r.IntN(4)]}
	for _, id := range r.Perm(n)[:r.IntN(n+1)] {
		c := Column{Name: fmt.Sprintf("c%d_%d", id, r.IntN(2)), From: Source{FromItem, fmt.Sprint(id)}, Type: Type{Kind: String + TypeKind(r.IntN(5))}}
		c.Label, c.Required = []string{"", "A", "B"}[r.IntN(3)], r.IntN(3) == 0
		if r.IntN(3) == 0 {
			c.Type = ListOf(c.Type)
		}
		s.Columns = append(s.Columns, c)
	}
	return s
}

// TestDiffLaws: nothing changed of what is equal; what one direction adds the
// other removes; and the changes tell how to come from one to the other.
func TestDiffLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		a, b := random(r, 9), random(r, 9)
		checkDiff(t, a, b)
	}
}

func checkDiff(t *testing.T, a, b *Schema) {
	t.Helper()
	if got := Diff(a, a); len(got) != 0 {
		t.Fatalf("of equal ones:\n%s", lines(got))
	}
	forth, back := Diff(a, b), Diff(b, a)
	if !reflect.DeepEqual(forth, Diff(a, b)) {
		t.Fatal("two calls differ")
	}
	if !slices.Equal(sourcesOf(forth, ColumnAdded), sourcesOf(back, ColumnRemoved)) ||
		len(sourcesOf(forth, ColumnReordered)) != len(sourcesOf(back, ColumnReordered)) {
		t.Fatalf("forth\n%s\nback\n%s", lines(forth), lines(back))
	}
	if kept := rest(a, sourcesOf(forth, ColumnRemoved)); (len(sourcesOf(forth, ColumnReordered)) == 0) != slices.Equal(kept, rest(b, sourcesOf(forth, ColumnAdded))) {
		t.Fatalf("%v and %v after\n%s", kept, b, lines(forth))
	}
	// What is the same but for names, labels and types says so.
	for _, c := range b.Columns {
		i := a.Find(c.From)
		if i < 0 {
			continue
		}
		retyped := slices.Contains(sourcesOf(forth, ColumnRetyped), c.From.String())
		renamed := slices.Contains(sourcesOf(forth, ColumnRenamed), c.From.String())
		if retyped == a.Columns[i].Type.Equal(c.Type) || renamed == (a.Columns[i].Name == c.Name) {
			t.Fatalf("%+v and %+v:\n%s", a.Columns[i], c, lines(forth))
		}
	}
}

func sourcesOf(changes []Change, kind ChangeKind) []string {
	var list []string
	for _, c := range changes {
		if c.Kind == kind {
			list = append(list, c.From)
		}
	}
	return list
}

func rest(s *Schema, gone []string) []string {
	var list []string
	for _, c := range s.Columns {
		if !slices.Contains(gone, c.From.String()) {
			list = append(list, c.From.String())
		}
	}
	return list
}
