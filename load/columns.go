package load

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// columnsDigits is the length of a ColumnsDigest.
const columnsDigits = 16

// ColumnsDigest is equal for columns of equal names and types in the same
// order. A part keeps that of its own, for loaders that take columns by
// position.
func ColumnsDigest(columns []Column) string {
	h := sha256.New()
	for _, c := range columns {
		c.digest(h)
	}
	return columnsSum(h)
}

// LeadingColumns are the digests of the first columns of a list: of one, of
// two, up to all of them. A part with one of them has so many of the list's
// columns at the same places.
func LeadingColumns(columns []Column) map[string]int {
	leading := make(map[string]int, len(columns))
	h := sha256.New()
	for i, c := range columns {
		c.digest(h)
		leading[columnsSum(h)] = i + 1
	}
	return leading
}

func (c Column) digest(h hash.Hash) { _, _ = fmt.Fprintf(h, "%q %q\n", valid(c.Name), valid(c.Type)) }

func columnsSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:columnsDigits] }
