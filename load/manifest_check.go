package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// DecodeManifest reads a manifest and checks that it has all required keys and
// is consistent. Unknown keys are ignored. The error is a *ManifestError.
func DecodeManifest(data []byte) (*Manifest, error) {
	var m Manifest
	if err := decodeOne(json.NewDecoder(bytes.NewReader(data)), &m); errors.Is(err, errFollows) {
		return nil, &ManifestError{Name: ManifestName, Problem: err.Error()}
	} else if err != nil {
		return nil, &ManifestError{Name: ManifestName, Problem: "it cannot be read", Err: err}
	}
	if problem := lacksKeys(data); problem != "" {
		return nil, &ManifestError{Name: ManifestName, Problem: problem}
	}
	if problem := m.problem(); problem != "" {
		return nil, &ManifestError{Name: ManifestName, Problem: problem}
	}
	return &m, nil
}

// lacksKeys names the first required key that a manifest lacks, "" if none. The
// decoder would read a missing key as a value: a missing bound as no bound, for
// instance.
func lacksKeys(data []byte) string {
	problem := lacks(data, "format", "pipeline", "form", "run_id", "created_at", "range", "watermark", "schema", "parts", "rows", "rejected", "verified", "requests")
	if problem != "" {
		return problem
	}
	var m struct {
		Range    json.RawMessage   `json:"range"`
		Source   json.RawMessage   `json:"source"`
		Schema   []json.RawMessage `json:"schema"`
		Parts    []json.RawMessage `json:"parts"`
		Verified json.RawMessage   `json:"verified"`
		Requests json.RawMessage   `json:"requests"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return err.Error() // cannot happen: it was decoded before
	}
	objects := []struct {
		what string
		list []json.RawMessage
		keys []string
	}{
		{"its range", []json.RawMessage{m.Range}, []string{"from", "to"}},
		{"its source", []json.RawMessage{m.Source}, []string{"account", "timezone"}},
		{"a column", m.Schema, []string{"name", "type", "from", "label"}},
		{"a part", m.Parts, []string{"path", "from", "to", "rows", "min_id", "max_id", "bytes", "sha256"}},
		{"its verification", []json.RawMessage{m.Verified}, []string{"counted", "extracted", "match"}},
		{"its count of requests", []json.RawMessage{m.Requests}, []string{"results", "count", "retries"}},
	}
	for _, o := range objects {
		for _, object := range o.list {
			if object == nil {
				continue // a source is optional
			}
			if problem := lacks(object, o.keys...); problem != "" {
				return o.what + ": " + problem
			}
		}
	}
	return ""
}

// lacks names the first of the keys that a JSON object does not have, "" if it
// has all.
func lacks(object []byte, keys ...string) string {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(object, &has); err != nil || has == nil {
		return "it is no object"
	}
	for _, key := range keys {
		if _, ok := has[key]; !ok {
			return fmt.Sprintf("it has no key %q", key)
		}
	}
	return ""
}

// problem says where a manifest is inconsistent, "" if it is consistent.
func (m *Manifest) problem() string {
	switch {
	case m.Format == "":
		return "it names no format"
	case m.RunID == "":
		return "it names no run"
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
		return fmt.Sprintf("its parts hold %d rows and it says %d", rows, m.Rows)
	}
	return ""
}

func (p *Part) problem() string {
	if err := CheckObjectName(p.Path); err != nil {
		return "has a path that is refused: " + err.Error()
	}
	switch {
	case p.Rows < 0 || p.Bytes < 0:
		return "has a negative size"
	case p.Rows > 0 && p.MinID > p.MaxID:
		return "has ids in disorder"
	case !isHex(p.SHA256, sha256Digits):
		return "has no sha256"
	case p.IDs != "" && !isHex(p.IDs, sha256Digits):
		return "has ids without a sha256"
	case p.Columns != "" && !isHex(p.Columns, columnsDigits):
		return "has columns without a digest"
	case !p.From.IsZero() && !p.To.IsZero() && !p.From.Before(p.To.Time):
		return "ends before it begins"
	case p.Undated && (!p.From.IsZero() || !p.To.IsZero()):
		return "is without a date and has a window"
	}
	if key, err := ParsePartName(p.Path); err == nil && (key.Undated != p.Undated || !key.From.Equal(p.From.Time) || !key.To.Equal(p.To.Time)) {
		return "has another window than its name says"
	}
	return ""
}

// sha256Digits is the length of a SHA-256 in hex.
const sha256Digits = 64

// isHex tells whether s is lower-case hex of exactly this many digits.
func isHex(s string, digits int) bool {
	if len(s) != digits {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
