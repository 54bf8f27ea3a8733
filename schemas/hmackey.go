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

// LeastHMACKey is the least length in bytes of a key of PIIHMAC. A shorter key
// could be found by trying.
const LeastHMACKey = 16

const redactedKey = "[redacted]"

// HMACKey is the secret with which PIIHMAC hashes values. Formatting, logging
// and marshalling a key show nothing of its secret. ID tells two keys apart.
type HMACKey struct{ secret []byte }

// NewHMACKey returns a key with a copy of the secret, or an error if the secret is too short.
func NewHMACKey(secret []byte) (HMACKey, error) {
	if len(secret) < LeastHMACKey {
		return HMACKey{}, fmt.Errorf("the key of pii: hmac has %d bytes and needs %d at least; `openssl rand -hex 32` makes one", len(secret), LeastHMACKey)
	}
	return HMACKey{bytes.Clone(secret)}, nil
}

// IsZero tells whether k holds no secret.
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
	h.Write([]byte("formetl hmac key id")) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// String returns "[redacted]".
func (k HMACKey) String() string { return redactedKey }

// Format writes "[redacted]" for every verb.
func (k HMACKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redactedKey)) }

// LogValue returns "[redacted]".
func (k HMACKey) LogValue() slog.Value { return slog.StringValue(redactedKey) }

// MarshalText returns the key's ID, so that definitions with different keys
// have different fingerprints.
func (k HMACKey) MarshalText() ([]byte, error) { return []byte(k.ID()), nil }
