package schemas

import (
	"fmt"
	"strconv"
	"strings"
)

// PIIKind says what is done to the values of a column that holds personal data.
type PIIKind uint8

// The kinds of protection. All are applied before anything is written.
const (
	PIINone     PIIKind = iota
	PIIDrop             // the column is left out
	PIIRedact           // every value becomes Redacted
	PIIHMAC             // every value becomes its keyed hash: equal values stay equal
	PIITruncate         // every value keeps its first characters
)

// Redacted replaces every value of a column with PIIRedact.
const Redacted = "[redacted]"

// PII is a column's rule for personal data. The zero value means no rule.
type PII struct {
	Kind PIIKind
	Keep int // how many characters PIITruncate keeps, 0 or more
}

// piiNames are the names of the rules without a number.
var piiNames = map[PIIKind]string{PIIDrop: "drop", PIIRedact: "redact", PIIHMAC: "hmac"}

// String returns the rule in the spelling of ParsePII, or "" if there is none.
func (p PII) String() string {
	if p.Kind == PIITruncate {
		return "truncate(" + strconv.Itoa(p.Keep) + ")"
	}
	return piiNames[p.Kind]
}

// MarshalText returns the same text as String, for fingerprints of definitions.
func (p PII) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

const knownPII = "drop, redact, hmac or truncate(n)"

// ParsePII reads a rule as schema files spell it.
func ParsePII(text string) (PII, error) {
	rule := strings.TrimSpace(text)
	for kind, name := range piiNames {
		if rule == name {
			return PII{Kind: kind}, nil
		}
	}
	if inner, ok := between(rule, "truncate", '(', ')'); ok {
		n, err := strconv.ParseUint(strings.TrimSpace(inner), 10, 16)
		if err != nil {
			return PII{}, fmt.Errorf("rule %q: truncate keeps a number of characters, for example truncate(3)", text)
		}
		return PII{Kind: PIITruncate, Keep: int(n)}, nil
	}
	return PII{}, fmt.Errorf("rule %q is not known: a column's pii is %s", text, knownPII)
}
