package tables

import (
	"encoding/binary"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// A numeric value is a list of digits of base 10,000, with the weight of the first one.
const (
	numericBase     = 10_000
	numericDecimals = 4 // decimal digits of a digit
	numericNegative = 0x4000
)

// appendNumeric appends a decimal as the server prints a numeric: without zeros in front or
// behind, and with the scale of its column.
func appendNumeric(out []byte, n decimal128.Num, scale int32) []byte {
	unscaled := n.BigInt()
	negative := unscaled.Sign() < 0
	unscaled.Abs(unscaled)
	// The decimal point must lie between two digits of the base.
	pad := (numericDecimals - int(scale)%numericDecimals) % numericDecimals
	unscaled.Mul(unscaled, big.NewInt(int64([]int{1, 10, 100, 1000}[pad])))
	var digits []uint16 // the lowest first
	base, rest := big.NewInt(numericBase), new(big.Int)
	for unscaled.Sign() > 0 {
		unscaled.QuoRem(unscaled, base, rest)
		digits = append(digits, uint16(rest.Int64())) //nolint:gosec // below the base
	}
	weight := len(digits) - 1 - (int(scale)+pad)/numericDecimals
	for len(digits) > 0 && digits[0] == 0 {
		digits = digits[1:]
	}
	var sign uint16
	if negative {
		sign = numericNegative
	}
	if len(digits) == 0 {
		weight = 0
	}
	for _, word := range []uint16{uint16(len(digits)), uint16(int16(weight)), sign, uint16(scale)} { //nolint:gosec // small, and the bits are kept
		out = binary.BigEndian.AppendUint16(out, word)
	}
	for i := len(digits) - 1; i >= 0; i-- {
		out = binary.BigEndian.AppendUint16(out, digits[i])
	}
	return out
}
