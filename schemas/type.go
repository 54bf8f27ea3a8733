package schemas

// TypeKind is the kind of a column type.
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

// Type is a column's type: one of "string int64 float64 bool date timestamp
// decimal(p,s) list<T>".
type Type struct {
	Kind             TypeKind
	Precision, Scale int32 // of a Decimal
	Elem             *Type // of a List
}
