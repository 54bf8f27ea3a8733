package load

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// columnsDigits is the length of a ColumnsDigest.
const columnsDigits = 16

// ColumnsDigest is a digest of the names and types of columns, in their order.
// The manifest holds it for each part, for loaders that match columns by
// position.
func ColumnsDigest(columns []Column) string {
	h := sha256.New()
	for _, c := range columns {
		c.digest(h)
	}
	return columnsSum(h)
}

// LeadingColumns maps the digest of the first n columns to n, for every n. A
// part with such a digest has the first n columns of the list, in the same
// places.
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
