package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DecodeManifest reads a manifest and checks that it is consistent. Unknown keys are ignored.
// The error is a *ManifestError.
func DecodeManifest(data []byte) (*Manifest, error) {
	var m Manifest
	if err := decodeOne(json.NewDecoder(bytes.NewReader(data)), &m); err != nil {
		return nil, &ManifestError{Name: ManifestName, Problem: "it cannot be read", Err: err}
	}
	if problem := m.problem(); problem != "" {
		return nil, &ManifestError{Name: ManifestName, Problem: problem}
	}
	return &m, nil
}

// decodeOne decodes a text that is exactly one JSON value into v, which is a pointer.
func decodeOne(dec *json.Decoder, v any) error {
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after its end")
	}
	return nil
}

// problem says in which way a manifest is inconsistent, "" if it is consistent.
func (m *Manifest) problem() string {
	switch {
	case m.Format == "":
		return "it has no format"
	case m.RunID == "":
		return "it has no run id"
	case m.Parts == nil:
		return "it lists no parts"
	}
	var rows int64
	seen := make(map[string]bool, len(m.Parts))
	for _, p := range m.Parts {
		if seen[p.Path] {
			return fmt.Sprintf("it lists the part %q twice", p.Path)
		}
		if problem := p.problem(); problem != "" {
			return fmt.Sprintf("its part %q %s", p.Path, problem)
		}
		seen[p.Path] = true
		rows += p.Rows
	}
	if rows != m.Rows {
		return fmt.Sprintf("its parts have %d rows together, but it says %d", rows, m.Rows)
	}
	if problem := m.Changes.problem(); problem != "" {
		return "its list of changes " + problem
	}
	return ""
}

func (p *Part) problem() string {
	if CheckObjectName(p.Path) != nil {
		return "is not named like a part"
	}
	switch {
	case p.Rows < 0 || p.Rejected < 0 || p.Bytes < 0:
		return "has a negative size"
	case p.Rows > 0 && p.MinID > p.MaxID:
		return "has a lowest id above the highest"
	case !isSHA256(p.SHA256):
		return "has no sha256"
	case p.IDs != "" && !isSHA256(p.IDs):
		return "names its list of ids by something that is no sha256"
	case p.Letters != "" && !isSHA256(p.Letters):
		return "names its dead letters by something that is no sha256"
	case !p.From.IsZero() && !p.To.IsZero() && !p.From.Before(p.To.Time):
		return "ends before it begins"
	case p.Undated && (!p.From.IsZero() || !p.To.IsZero()):
		return "holds results without a date, but has dates"
	}
	if key, err := ParsePartName(p.Path); err == nil && (key.Undated != p.Undated || !key.From.Equal(p.From.Time) || !key.To.Equal(p.To.Time)) {
		return "has other dates than its name says"
	}
	return ""
}

// isSHA256 tells whether s is a SHA-256 in lower-case hex.
func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
