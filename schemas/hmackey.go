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
)

// LeastHMACKey is the length in bytes that a key of PIIHMAC has at least: a
// shorter one could be found by trying.
const LeastHMACKey = 16

const redactedKey = "[redacted]"

// HMACKey is the secret that PIIHMAC hashes values with. However it is
// formatted, logged or marshalled it shows nothing of the secret; ID tells two
// keys apart.
type HMACKey struct{ secret []byte }

// NewHMACKey takes a copy of the secret.
func NewHMACKey(secret []byte) (HMACKey, error) {
	if len(secret) < LeastHMACKey {
		return HMACKey{}, fmt.Errorf("the key of pii: hmac has %d bytes and needs %d at least; `openssl rand -hex 32` makes one", len(secret), LeastHMACKey)
	}
	return HMACKey{bytes.Clone(secret)}, nil
}

// IsZero tells whether there is no key.
func (k HMACKey) IsZero() bool { return len(k.secret) == 0 }

// Hash returns an HMAC-SHA-256 (RFC 2104) with the key. The key must not be
// zero.
func (k HMACKey) Hash() (hash.Hash, error) {
	if k.IsZero() {
		return nil, errors.New("pii: hmac needs a key")
	}
	return hmac.New(sha256.New, k.secret), nil
}

// ID is equal for equal keys and tells nothing of them: eight hex digits of an
// HMAC of a fixed text. "" for no key.
func (k HMACKey) ID() string {
	h, err := k.Hash()
	if err != nil {
		return ""
	}
	h.Write([]byte("formetl hmac key id")) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// String returns "[redacted]".
func (k HMACKey) String() string { return redactedKey }

// Format writes "[redacted]" for every verb.
func (k HMACKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redactedKey)) }

// LogValue is "[redacted]".
func (k HMACKey) LogValue() slog.Value { return slog.StringValue(redactedKey) }

// MarshalText gives the key's ID, so that fingerprints of definitions differ
// where their keys do.
func (k HMACKey) MarshalText() ([]byte, error) { return []byte(k.ID()), nil }
