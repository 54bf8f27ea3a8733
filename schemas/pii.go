package schemas

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"strconv"
	"strings"
)

// PIIKind says what is done to the values of a column that holds personal data.
type PIIKind uint8

// The kinds of protection for personal data. All are applied before anything is written.
const (
	PIINone     PIIKind = iota
	PIIDrop             // the column is left out of the outputs
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

// piiNames are the spellings of the rules for personal data that have no number.
var piiNames = map[PIIKind]string{PIIDrop: "drop", PIIRedact: "redact", PIIHMAC: "hmac"}

// String returns the rule as ParsePII reads it, or "" if there is none.
func (p PII) String() string {
	if p.Kind == PIITruncate {
		return "truncate(" + strconv.Itoa(p.Keep) + ")"
	}
	return piiNames[p.Kind]
}

// MarshalText returns the same text as String, for fingerprints of definitions.
func (p PII) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

const knownPII = "drop, redact, hmac or truncate(n)"

// ParsePII reads a rule for personal data, as schema files spell it: drop, redact, hmac or
// truncate(n).
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
			return PII{}, fmt.Errorf("rule %q: truncate needs the number of characters to keep, for example truncate(3)", text)
		}
		return PII{Kind: PIITruncate, Keep: int(n)}, nil
	}
	return PII{}, fmt.Errorf("unknown rule %q; use %s", text, knownPII)
}

// LeastHMACKey is the least length in bytes of a key of PIIHMAC. A shorter key could be found
// by trying all.
const LeastHMACKey = 16

const redactedKey = "[redacted]"

// HMACKey is the secret with which PIIHMAC hashes values. Formatting, logging
// and marshalling a key show nothing of its secret. ID tells two keys apart.
type HMACKey struct{ secret []byte }

// NewHMACKey returns a key with a copy of the secret, or an error if the secret is too short.
func NewHMACKey(secret []byte) (HMACKey, error) {
	if len(secret) < LeastHMACKey {
		return HMACKey{}, fmt.Errorf("a key of %d bytes, but pii: hmac needs at least %d; `openssl rand -hex 32` prints a longer one", len(secret), LeastHMACKey)
	}
	return HMACKey{bytes.Clone(secret)}, nil
}

// IsZero tells whether the key k holds no secret.
func (k HMACKey) IsZero() bool { return len(k.secret) == 0 }

// Hash returns a new HMAC-SHA-256 (RFC 2104) with the key, or an error if the
// key is zero.
func (k HMACKey) Hash() (hash.Hash, error) {
	if k.IsZero() {
		return nil, errors.New("pii: hmac needs a key")
	}
	return hmac.New(sha256.New, k.secret), nil
}

// ID returns eight hex digits that are equal for equal keys and reveal nothing of
// them. They are from the HMAC of a fixed text. For a zero key it returns "".
func (k HMACKey) ID() string {
	h, err := k.Hash()
	if err != nil {
		return ""
	}
	h.Write([]byte("formetl hmac key id")) // writing to a hash never fails
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// String returns "[redacted]" in place of the key's secret.
func (k HMACKey) String() string { return redactedKey }

// Format writes "[redacted]" in place of the key's secret, for every verb of fmt.
func (k HMACKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redactedKey)) }

// LogValue returns "[redacted]", so that no log shows the key's secret.
func (k HMACKey) LogValue() slog.Value { return slog.StringValue(redactedKey) }

// MarshalText returns the key's ID, so that definitions with different keys
// have different fingerprints.
func (k HMACKey) MarshalText() ([]byte, error) { return []byte(k.ID()), nil }
