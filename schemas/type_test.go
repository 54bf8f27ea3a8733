package schemas

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func TestParseType(t *testing.T) {
	list := func(k TypeKind) Type { return ListOf(Type{Kind: k}) }
	for _, tt := range []struct {
		text, spelled string
		want          Type
	}{
		{"string", "string", Type{Kind: String}},
		{"int64", "int64", Type{Kind: Int64}},
		{"float64", "float64", Type{Kind: Float64}},
		{"bool", "bool", Type{Kind: Bool}},
		{"date", "date", Type{Kind: Date}},
		{" timestamp ", "timestamp", Type{Kind: Timestamp}},
		{"decimal(12,2)", "decimal(12,2)", Type{Kind: Decimal, Precision: 12, Scale: 2}},
		{"decimal ( 38 , 38 )", "decimal(38,38)", Type{Kind: Decimal, Precision: 38, Scale: 38}},
		{"decimal(1,0)", "decimal(1,0)", Type{Kind: Decimal, Precision: 1}},
		{"list<string>", "list<string>", list(String)},
		{"list< int64 >", "list<int64>", list(Int64)},
		{"list<decimal(5,1)>", "list<decimal(5,1)>", ListOf(Type{Kind: Decimal, Precision: 5, Scale: 1})},
	} {
		got, err := ParseType(tt.text)
		if err != nil || !got.Equal(tt.want) || got.String() != tt.spelled {
			t.Errorf("ParseType(%q) = %v, %v; want %s", tt.text, got, err, tt.spelled)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%q: Validate: %v", tt.text, err)
		}
	}
}

func TestParseTypeErrors(t *testing.T) {
	const types = "; use string, int64, float64, bool, date, timestamp, decimal(p,s) or list<T>"
	unknown := func(text string) [2]string { return [2]string{text, `unknown type "` + text + `"` + types} }
	for _, tt := range [][2]string{
		unknown("strin"), unknown("String"), unknown("text"), unknown("int"), unknown("decimal"), unknown("decimal(12"), unknown("list"), unknown("list[string]"),
		{"", "a type is required: string, int64, float64, bool, date, timestamp, decimal(p,s) or list<T>"},
		{"decimal(12)", `type "decimal(12)": write a decimal as decimal(precision,scale), for example decimal(12,2)`},
		{"decimal(a,b)", `type "decimal(a,b)": write a decimal as decimal(precision,scale), for example decimal(12,2)`},
		{"decimal(-1,0)", `type "decimal(-1,0)": write a decimal as decimal(precision,scale), for example decimal(12,2)`},
		{"decimal(39,2)", `type "decimal(39,2)": the first number, how many digits a decimal has in all, must be 1 to 38, not 39`},
		{"decimal(0,0)", `type "decimal(0,0)": the first number, how many digits a decimal has in all, must be 1 to 38, not 0`},
		{"decimal(3,4)", `type "decimal(3,4)": the second number, how many digits a decimal has after the point, must be 0 to 3, not 4`},
		{"list<list<string>>", `type "list<list<string>>": a list of lists is not possible; an element is one of string, int64, float64, bool, date, timestamp, decimal(p,s)`},
		{"list<>", `type "list<>": element: a type is required: string, int64, float64, bool, date, timestamp, decimal(p,s) or list<T>`},
		{"list<strng>", `type "list<strng>": element: unknown type "strng"` + types},
	} {
		got, err := ParseType(tt[0])
		if err == nil || err.Error() != tt[1] {
			t.Errorf("ParseType(%q) = %v, error:\n%v\nwant:\n%s", tt[0], got, err, tt[1])
		}
	}
}

func TestTypeValidate(t *testing.T) {
	nested := ListOf(ListOf(Type{Kind: String}))
	for _, tt := range []struct {
		t    Type
		want string
	}{
		{Type{}, "a type is required"},
		{Type{Kind: 99}, "a type is required"},
		{Type{Kind: Decimal}, "first number"},
		{Type{Kind: Decimal, Precision: 4, Scale: -1}, "second number"},
		{Type{Kind: List}, "needs the type of its elements"},
		{nested, "list of lists"},
		{ListOf(Type{Kind: Decimal, Precision: 40}), "first number"},
	} {
		err := tt.t.Validate()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Validate(%v) = %v, want %q", tt.t, err, tt.want)
		}
	}
	if got := (Type{}).String() + " " + (Type{Kind: List}).String(); got != "invalid invalid" {
		t.Errorf("invalid types are spelled %q", got)
	}
}

func TestTypeArrow(t *testing.T) {
	for text, want := range map[string]arrow.DataType{
		"string":        arrow.BinaryTypes.String,
		"int64":         arrow.PrimitiveTypes.Int64,
		"float64":       arrow.PrimitiveTypes.Float64,
		"bool":          arrow.FixedWidthTypes.Boolean,
		"date":          arrow.PrimitiveTypes.Date32,
		"timestamp":     &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
		"decimal(12,2)": &arrow.Decimal128Type{Precision: 12, Scale: 2},
		"list<date>":    arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Date32, Nullable: true}),
	} {
		parsed, err := ParseType(text)
		if err != nil {
			t.Fatal(err)
		}
		got := parsed.Arrow()
		if !arrow.TypeEqual(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		if l, ok := got.(*arrow.ListType); ok && (l.ElemField().Name != "element" || !l.ElemField().Nullable) {
			t.Errorf("%s: element field %v", text, l.ElemField())
		}
	}
}

// FuzzParseType holds that what ParseType takes is valid, is spelled as it is
// read, and that every error names a known type or the rule that is broken.
func FuzzParseType(f *testing.F) {
	for _, s := range []string{
		"string", "decimal(12,2)", "list<decimal(38,0)>", "list<list<string>>", "decimal(", "list<", " bool ",
		"decimal(99999999999,2)", "", "\x00", "list<>", "decimal(1,2,3)", "Ïnt64", "list<string>>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseType(text)
		if err != nil {
			if !strings.Contains(err.Error(), "type") && !strings.Contains(err.Error(), "decimal") {
				t.Errorf("ParseType(%q): the error names no type: %v", text, err)
			}
			return
		}
		if err := got.Validate(); err != nil {
			t.Errorf("ParseType(%q) gives an invalid type: %v", text, err)
		}
		again, err := ParseType(got.String())
		if err != nil || !again.Equal(got) {
			t.Errorf("ParseType(%q) = %s, read again %v, %v", text, got, again, err)
		}
		_ = got.Arrow()
	})
}
