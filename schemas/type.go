package schemas

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// TypeKind is the kind of a column type, such as Date or List.
type TypeKind uint8

// The kinds of types that a column can have.
const (
	String TypeKind = iota + 1
	Int64
	Float64
	Bool
	Date      // calendar day, Arrow date32
	Timestamp // instant, Arrow timestamp[us, UTC]
	Decimal   // Arrow decimal128(Precision, Scale), 1 <= Precision <= 38, 0 <= Scale <= Precision
	List      // Arrow list of Elem; an element is never a list
)

// MaxPrecision is the number of decimal digits that decimal128 holds in full.
const MaxPrecision = 38

// ElementName is the name of the field for a list's elements, as in Parquet's
// three-level LIST.
const ElementName = "element"

// Type is a column's type, written as one of "string int64 float64 bool date
// timestamp decimal(p,s) list<T>".
type Type struct {
	Kind             TypeKind
	Precision, Scale int32 // digits of a Decimal, and how many are after the point
	Elem             *Type // type of the elements of a List
}

// ListOf returns the type list<elem>.
func ListOf(elem Type) Type { return Type{Kind: List, Elem: &elem} }

// scalars are the column types without parameters, by their kind.
var scalars = [...]struct {
	name  string
	arrow arrow.DataType
}{
	String:    {"string", arrow.BinaryTypes.String},
	Int64:     {"int64", arrow.PrimitiveTypes.Int64},
	Float64:   {"float64", arrow.PrimitiveTypes.Float64},
	Bool:      {"bool", arrow.FixedWidthTypes.Boolean},
	Date:      {"date", arrow.FixedWidthTypes.Date32},
	Timestamp: {"timestamp", arrow.FixedWidthTypes.Timestamp_us},
}

func (t Type) scalar() bool { return t.Kind >= String && t.Kind <= Timestamp }

// String returns the type in the spelling of ParseType. It returns "invalid"
// for a type that ParseType cannot return.
func (t Type) String() string {
	switch {
	case t.scalar():
		return scalars[t.Kind].name
	case t.Kind == Decimal:
		return "decimal(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case t.Kind == List && t.Elem != nil:
		return "list<" + t.Elem.String() + ">"
	}
	return "invalid"
}

// Equal tells whether t and o are the same type.
func (t Type) Equal(o Type) bool { return t.String() == o.String() }

// Arrow returns the Arrow type: utf8, int64, float64, bool, date32, timestamp[us,
// UTC], decimal128(p,s), or a list. The elements of a list are nullable, and their
// field is named ElementName. The type must be valid (Validate).
func (t Type) Arrow() arrow.DataType {
	switch t.Kind {
	case Decimal:
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}
	case List:
		return arrow.ListOfField(arrow.Field{Name: ElementName, Type: t.Elem.Arrow(), Nullable: true})
	}
	return scalars[t.Kind].arrow
}

// Validate returns what is wrong with the type, or nil. ParseType returns only valid types.
func (t Type) Validate() error {
	switch {
	case t.scalar():
		return nil
	case t.Kind == Decimal:
		return checkDecimal(t.Precision, t.Scale)
	case t.Kind == List:
		if t.Elem == nil {
			return fmt.Errorf("list needs the type of its elements, such as list<string>")
		}
		if t.Elem.Kind == List {
			return errNested
		}
		return t.Elem.Validate()
	}
	return fmt.Errorf("a type is required: %s", knownTypes)
}

const knownTypes = "string, int64, float64, bool, date, timestamp, decimal(p,s) or list<T>"

var errNested = fmt.Errorf("a list of lists is not possible; an element is one of string, int64, float64, bool, date, timestamp, decimal(p,s)")

// ParseType reads a type as schema files spell it. Blanks are allowed around the parts. Names
// of types must be in lower case. The error for an unknown name suggests the nearest known
// name.
func ParseType(text string) (Type, error) {
	t := strings.TrimSpace(text)
	for kind := String; kind <= Timestamp; kind++ {
		if t == scalars[kind].name {
			return Type{Kind: kind}, nil
		}
	}
	if inner, ok := between(t, "decimal", '(', ')'); ok {
		return parseDecimal(text, inner)
	}
	if inner, ok := between(t, "list", '<', '>'); ok {
		elem, err := ParseType(inner)
		if err != nil {
			return Type{}, fmt.Errorf("type %q: element: %w", text, err)
		}
		if elem.Kind == List {
			return Type{}, fmt.Errorf("type %q: %w", text, errNested)
		}
		return ListOf(elem), nil
	}
	if t == "" {
		return Type{}, Type{}.Validate()
	}
	return Type{}, fmt.Errorf("unknown type %q; use %s", text, knownTypes)
}

// between returns the text between the brackets that follow name in t, such as "10,2" in
// "decimal(10,2)". It returns false if t has another form.
func between(t, name string, opening, closing byte) (string, bool) {
	rest, ok := strings.CutPrefix(t, name)
	rest = strings.TrimSpace(rest)
	if !ok || len(rest) < 2 || rest[0] != opening || rest[len(rest)-1] != closing {
		return "", false
	}
	return rest[1 : len(rest)-1], true
}

func parseDecimal(text, inner string) (Type, error) {
	p, s, ok := strings.Cut(inner, ",")
	precision, err1 := parseDigits(p)
	scale, err2 := parseDigits(s)
	if !ok || err1 != nil || err2 != nil {
		return Type{}, fmt.Errorf("type %q: write a decimal as decimal(precision,scale), for example decimal(12,2)", text)
	}
	if err := checkDecimal(precision, scale); err != nil {
		return Type{}, fmt.Errorf("type %q: %w", text, err)
	}
	return Type{Kind: Decimal, Precision: precision, Scale: scale}, nil
}

// parseDigits reads a small number that may have blanks around it.
func parseDigits(s string) (int32, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	return int32(n), err
}

func checkDecimal(precision, scale int32) error {
	if precision < 1 || precision > MaxPrecision {
		return fmt.Errorf("the first number, how many digits a decimal has in all, must be 1 to %d, not %d", MaxPrecision, precision)
	}
	if scale < 0 || scale > precision {
		return fmt.Errorf("the second number, how many digits a decimal has after the point, must be 0 to %d, not %d", precision, scale)
	}
	return nil
}
