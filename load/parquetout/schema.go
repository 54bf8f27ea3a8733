package parquetout

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// elementsOf returns the Parquet schema of the columns in their order, as the
// footer lists it. A name may hold dots and any other character.
func elementsOf(schema *arrow.Schema) []format.SchemaElement {
	// Readers do not show the name of the root. The reference implementations
	// write "schema".
	elements := []format.SchemaElement{{Name: "schema", NumChildren: thrift.New(int32(schema.NumFields()))}}
	for _, f := range schema.Fields() {
		repetition := format.Required
		if f.Nullable {
			repetition = format.Optional
		}
		list, ok := f.Type.(*arrow.ListType)
		if !ok {
			elements = append(elements, leafElement(f.Name, repetition, f.Type))
			continue
		}
		elements = append(
			elements,
			format.SchemaElement{
				Name: f.Name, RepetitionType: thrift.New(repetition), NumChildren: thrift.New[int32](1),
				ConvertedType: thrift.New(deprecated.List), LogicalType: format.LogicalType{Value: &format.ListType{}},
			},
			format.SchemaElement{Name: "list", RepetitionType: thrift.New(format.Repeated), NumChildren: thrift.New[int32](1)},
			leafElement("element", format.Optional, list.Elem()),
		)
	}
	return elements
}

// pathOf returns the path of a column's values in the schema.
func pathOf(f arrow.Field) []string {
	if f.Type.ID() == arrow.LIST {
		return []string{f.Name, "list", "element"}
	}
	return []string{f.Name}
}

// leafElement returns the element of a scalar type. Columns have no types but these.
func leafElement(name string, repetition format.FieldRepetitionType, t arrow.DataType) format.SchemaElement {
	e := format.SchemaElement{Name: name, RepetitionType: thrift.New(repetition)}
	// For numbers the length is that in bits.
	physical := func(p format.Type, length int) {
		e.Type = thrift.New(p)
		e.TypeLength = thrift.Null[int32]{V: int32(length), Valid: length > 0}
	}
	logical := func(converted deprecated.ConvertedType, value format.LogicalTypeValue) {
		e.ConvertedType, e.LogicalType.Value = thrift.New(converted), value
	}
	switch t := t.(type) {
	case *arrow.StringType:
		physical(format.ByteArray, 0)
		logical(deprecated.UTF8, &format.StringType{})
	case *arrow.Int64Type:
		physical(format.Int64, 64)
		e.LogicalType.Value = &format.IntType{BitWidth: 64, IsSigned: true}
	case *arrow.Float64Type:
		physical(format.Double, 64)
	case *arrow.BooleanType:
		physical(format.Boolean, 1)
	case *arrow.Date32Type:
		physical(format.Int32, 32)
		logical(deprecated.Date, &format.DateType{})
	case *arrow.TimestampType:
		physical(format.Int64, 64)
		logical(deprecated.TimestampMicros, &format.TimestampType{
			IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: &format.MicroSeconds{}},
		})
	case *arrow.Decimal128Type:
		physical(decimalType(t))
		logical(deprecated.Decimal, &format.DecimalType{Scale: t.Scale, Precision: t.Precision})
		e.Scale, e.Precision = thrift.New(t.Scale), thrift.New(t.Precision)
	default:
		panic(fmt.Sprintf("parquet: no column has the type %s", t))
	}
	return e
}

// decimalType returns the narrowest physical type for a decimal, as Parquet
// recommends, and its length. It is INT32 up to 9 digits and INT64 up to 18. Beyond
// that it has as few bytes as suffice.
func decimalType(t *arrow.Decimal128Type) (format.Type, int) {
	switch {
	case t.Precision <= 9:
		return format.Int32, 32
	case !wide(t):
		return format.Int64, 64
	default:
		return format.FixedLenByteArray, decimalBytes(int(t.Precision))
	}
}

// wide tells whether a decimal does not fit into an INT64.
func wide(t *arrow.Decimal128Type) bool { return t.Precision > 18 }

// decimalBytes returns how many bytes a decimal of precision digits needs in two's complement.
func decimalBytes(precision int) int {
	bits := float64(precision)*math.Log2(10) + 1
	return int(math.Ceil(bits / 8))
}
