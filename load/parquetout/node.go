package parquetout

import (
	"fmt"
	"math"
	"reflect"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go"
)

// group is the root of a schema. It keeps the order of its fields, which
// parquet.Group would sort by name. A struct made by reflection would keep the order
// too. But its tags cannot hold every name, because they are split at commas.
type group struct {
	parquet.Group // empty; provides the other methods of a node
	fields        []parquet.Field
}

// Fields returns the columns in their order.
func (g group) Fields() []parquet.Field { return g.fields }

// field is a node with a name. The name may hold dots and any other character.
type field struct {
	parquet.Node
	name string
}

// Name returns the column's name.
func (f field) Name() string { return f.name }

// Value returns no value. Column writers never call it.
func (f field) Value(reflect.Value) reflect.Value { return reflect.Value{} }

// newSchema returns the Parquet schema of the columns in their order.
// dictionary says for each column whether it is dictionary-encoded.
func newSchema(schema *arrow.Schema, dictionary []bool) *parquet.Schema {
	fields := make([]parquet.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		t := f.Type
		list, isList := t.(*arrow.ListType)
		if isList {
			t = list.Elem()
		}
		node := parquet.Encoded(leaf(t), &parquet.Plain)
		if dictionary[i] {
			node = parquet.Encoded(leaf(t), &parquet.RLEDictionary)
		}
		if isList {
			node = parquet.List(parquet.Optional(node))
		}
		if f.Nullable {
			node = parquet.Optional(node)
		}
		fields[i] = field{Node: node, name: f.Name}
	}
	// Readers do not show the name of the root. The reference implementations
	// write "schema".
	return parquet.NewSchema("schema", group{fields: fields})
}

// leaf returns the node of a scalar type. load.CheckSchema has already refused
// all types but these.
func leaf(t arrow.DataType) parquet.Node {
	switch t := t.(type) {
	case *arrow.StringType:
		return parquet.Leaf(textType{parquet.String().Type()})
	case *arrow.Int64Type:
		return parquet.Leaf(parquet.Int64Type)
	case *arrow.Float64Type:
		return parquet.Leaf(parquet.DoubleType)
	case *arrow.BooleanType:
		return parquet.Leaf(parquet.BooleanType)
	case *arrow.Date32Type:
		return parquet.Date()
	case *arrow.TimestampType:
		return parquet.Timestamp(parquet.Microsecond)
	case *arrow.Decimal128Type:
		node := parquet.Decimal(int(t.Scale), int(t.Precision), decimalType(int(t.Precision)))
		if wide(t) {
			return parquet.Leaf(signedType{node.Type()})
		}
		return node
	}
	panic(fmt.Sprintf("parquet: the type %s passed CheckSchema", t))
}

// decimalType returns the narrowest physical type for a decimal of precision
// digits, as Parquet recommends. It is INT32 up to 9 digits and INT64 up to 18.
// Beyond that it has as few bytes as suffice.
func decimalType(precision int) parquet.Type {
	switch {
	case precision <= 9:
		return parquet.Int32Type
	case precision <= 18:
		return parquet.Int64Type
	default:
		return parquet.FixedLenByteArrayType(decimalBytes(precision))
	}
}

// wide tells whether a decimal does not fit into an INT64.
func wide(t *arrow.Decimal128Type) bool { return t.Precision > 18 }

// decimalBytes returns how many bytes a decimal of precision digits needs in two's complement.
func decimalBytes(precision int) int {
	bits := float64(precision)*math.Log2(10) + 1
	return int(math.Ceil(bits / 8))
}
