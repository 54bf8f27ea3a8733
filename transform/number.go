package transform

import (
	"bytes"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Reasons why a value does not fit its column. Values are counted by reason, so the set of
// reasons is fixed and no reason holds a value.
const (
	reasonInt       = "not a whole number"
	reasonIntRange  = "a whole number too large for int64"
	reasonFloat     = "not a number"
	reasonFloatBig  = "a number too large for float64"
	reasonBool      = "not true, false, 1 or 0"
	reasonDecimal   = "not a decimal number"
	reasonScale     = "more digits after the point than its decimal type allows"
	reasonPrecision = "more digits before the point than its decimal type allows"
	reasonDate      = "not a date YYYY-MM-DD"
	reasonTimestamp = "not a time YYYY-MM-DD HH:MM:SS"
	reasonYear      = "a time outside the years 1 to 9999"
	reasonSeveral   = "several values"

	// Reasons in columns that declare a form, or that must not be null.
	reasonWord       = "not one of true_values or false_values"
	reasonSeparators = "not a number with the separators of the schema"
	reasonDateForm   = "not a date in a format of the schema"
	reasonTimeForm   = "not a time in a format of the schema"
	reasonMissing    = "no value"
)

// trim drops ASCII blanks on both ends of v.
func trim(v []byte) []byte {
	for len(v) > 0 && blank(v[0]) {
		v = v[1:]
	}
	for len(v) > 0 && blank(v[len(v)-1]) {
		v = v[:len(v)-1]
	}
	return v
}

func blank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// sign removes an optional sign from a number and tells whether the sign is a minus.
func sign(v []byte) (rest []byte, negative bool) {
	if len(v) > 0 && (v[0] == '-' || v[0] == '+') {
		return v[1:], v[0] == '-'
	}
	return v, false
}

// parseInt reads v as a decimal integer. The reason is "" if v fits.
func parseInt(v []byte) (n int64, reason string) {
	n, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(v), len(v)), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, reasonIntRange
	case err != nil:
		return 0, reasonInt
	}
	return n, ""
}

// parseFloat reads v as a decimal floating-point number. The reason is "" if v fits.
func parseFloat(v []byte) (f float64, reason string) {
	for _, c := range v { // a value of each row: quicker than bytes.Trim
		if !digit(c) && c != '+' && c != '-' && c != '.' && c != 'e' && c != 'E' {
			return 0, reasonFloat
		}
	}
	if len(v) == 0 {
		return 0, reasonFloat
	}
	// The string is a view of v during the call: strconv keeps nothing of it (its errors hold a
	// copy).
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(v), len(v)), 64)
	switch {
	case math.IsInf(f, 0):
		return 0, reasonFloatBig
	case err != nil:
		return 0, reasonFloat
	case f == 0 && !zero(v):
		return 0, reasonFloatBig
	}
	return f, ""
}

// zero tells whether a number in decimal or scientific notation is really 0. A
// float64 is also 0 if the number is too near to 0.
func zero(v []byte) bool {
	for _, c := range v {
		switch {
		case c == 'e' || c == 'E':
			return true
		case c >= '1' && c <= '9':
			return false
		}
	}
	return true
}

// parseBool reads true, false (any letter case), 1 or 0. The reason is "" if v is one of
// these.
func parseBool(v []byte) (b bool, reason string) {
	switch {
	case len(v) == 1 && v[0] == '1', fold(v, "true"):
		return true, ""
	case len(v) == 1 && v[0] == '0', fold(v, "false"):
		return false, ""
	}
	return false, reasonBool
}

// fold compares v to a lower-case ASCII word without regard to case.
func fold(v []byte, word string) bool {
	return len(v) == len(word) && bytes.EqualFold(v, []byte(word)) // equal lengths leave out ſ for s
}

// parseDecimal reads a number as the integer number × 10^scale, exactly. The reason is "" if
// it fits.
func parseDecimal(v []byte, precision, scale int32) (n decimal128.Num, reason string) {
	v, negative := sign(v)
	whole, fraction, ok := cutPoint(v)
	if !ok {
		return n, reasonDecimal
	}
	for len(whole) > 0 && whole[0] == '0' {
		whole = whole[1:]
	}
	for len(fraction) > int(scale) && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	if len(fraction) > int(scale) {
		return n, reasonScale
	}
	if len(whole) > int(precision-scale) {
		return n, reasonPrecision
	}
	var hi, lo uint64
	push := func(d byte) {
		high, low := bits.Mul64(lo, 10)
		low, carry := bits.Add64(low, uint64(d), 0)
		hi, lo = hi*10+high+carry, low
	}
	for _, c := range whole {
		push(c - '0')
	}
	for i := range int(scale) {
		if i < len(fraction) {
			push(fraction[i] - '0')
		} else {
			push(0)
		}
	}
	// A number of at most 38 digits is below 2^127.
	n = decimal128.New(int64(hi), lo)
	if negative {
		n = n.Negate()
	}
	return n, ""
}

// cutPoint divides digits at an optional decimal point. ok tells whether there is at least one
// digit, on either side of the point.
func cutPoint(v []byte) (whole, fraction []byte, ok bool) {
	point := len(v)
	for i, c := range v {
		switch {
		case digit(c):
		case c == '.' && point == len(v):
			point = i
		default:
			return nil, nil, false
		}
	}
	whole = v[:point]
	if point < len(v) {
		fraction = v[point+1:]
	}
	return whole, fraction, len(whole)+len(fraction) > 0
}
