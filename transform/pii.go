package transform

import (
	"encoding/hex"
	"fmt"
	"hash"
	"unicode/utf8"

	"github.com/formetl/formetl/schemas"
)

// cloak applies the pii rules of a Flattener's columns. It treats a value when the value is
// taken from the page. So batches, statistics, dead letters and errors never hold the
// original.
type cloak struct {
	hmac hash.Hash // nil if no column has the rule hmac
	sum  []byte    // memory for a hash
}

// newCloak makes the cloak of a schema. It fails if a column needs an HMAC key and the schema
// has none.
func newCloak(s *schemas.Schema) (cloak, error) {
	if !s.Needs(schemas.PIIHMAC) {
		return cloak{}, nil
	}
	h, err := s.HMACKey.Hash()
	if err != nil {
		return cloak{}, fmt.Errorf("schema %q: %w", s.Name, err)
	}
	return cloak{hmac: h}, nil
}

// value returns v as the pii rule lets it be written. An empty value stays empty. The values
// of one row share the memory room: a new text is appended to room, and used is room with that
// text.
func (k *cloak) value(rule schemas.PII, v, room []byte) (treated, used []byte) {
	if len(v) == 0 {
		return v, room
	}
	start := len(room)
	switch rule.Kind {
	case schemas.PIIRedact:
		room = append(room, schemas.Redacted...)
	case schemas.PIIHMAC:
		k.hmac.Reset()
		k.hmac.Write(v) // writing to a hash never fails
		k.sum = k.hmac.Sum(k.sum[:0])
		room = hex.AppendEncode(room, k.sum)
	case schemas.PIITruncate:
		return truncate(v, rule.Keep), room
	default:
		return v, room
	}
	return room[start:], room
}

// truncate returns the first n characters of v. Characters are Unicode code
// points, so a combining accent may be cut off. A byte of invalid UTF-8 counts
// as one character.
func truncate(v []byte, n int) []byte {
	at := 0
	for ; n > 0 && at < len(v); n-- {
		_, size := utf8.DecodeRune(v[at:])
		at += size
	}
	return v[:at]
}

// valueOf returns the value v of column c in the current row, after the column's pii rule. It
// is valid until the next row.
func (r *row) valueOf(c *column, v []byte) []byte {
	if c.PII.Kind == schemas.PIINone {
		return v
	}
	if c.cloakedRow != r.number {
		c.cloakedRow, c.cloaked = r.number, c.cloaked[:0]
	}
	v, c.cloaked = r.cloak.value(c.PII, v, c.cloaked)
	return v
}
