package readback

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Names beside the data of a dataset.
const (
	ManifestName = "_manifest.json"
	SuccessName  = "_SUCCESS"
)

const wallLayout = "2006-01-02 15:04:05"

// WallTime is wall-clock time as manifests and reports write it; zero is null.
type WallTime struct{ time.Time }

// UnmarshalJSON reads a string or null.
func (w *WallTime) UnmarshalJSON(data []byte) error {
	var text *string
	err := json.Unmarshal(data, &text)
	if err == nil && text != nil {
		w.Time, err = time.Parse(wallLayout, *text)
	}
	return err
}

// MarshalJSON writes what UnmarshalJSON reads.
func (w WallTime) MarshalJSON() ([]byte, error) {
	if w.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(w.Format(wallLayout))
}

// String is the time as it is written, or "..".
func (w WallTime) String() string {
	if w.IsZero() {
		return ".."
	}
	return w.Format(wallLayout)
}

// Span is a half-open range of wall-clock time; zero is no bound.
type Span struct {
	From WallTime `json:"from"`
	To   WallTime `json:"to"`
}

// Holds tells whether a date lies in the span.
func (s Span) Holds(date time.Time) bool {
	return !date.Before(s.From.Time) && (s.To.IsZero() || date.Before(s.To.Time))
}

// Covers tells whether all of another span lies in the span.
func (s Span) Covers(o Span) bool {
	return !o.From.Before(s.From.Time) && (s.To.IsZero() || !o.To.IsZero() && !o.To.After(s.To.Time))
}

// Meets tells whether two spans have a second in common.
func (s Span) Meets(o Span) bool {
	return (o.To.IsZero() || s.From.Before(o.To.Time)) && (s.To.IsZero() || o.From.Before(s.To.Time))
}

// String is the span for people.
func (s Span) String() string { return s.From.String() + " to " + s.To.String() }

// Manifest holds the fields of a manifest that tests look at.
type Manifest struct {
	RunID     string   `json:"run_id"`
	Range     Span     `json:"range"`
	Watermark WallTime `json:"watermark"`
	Schema    []Column `json:"schema"`
	Parts     []Part   `json:"parts"`
	Rows      int64    `json:"rows"`
	Changes   *Changes `json:"changes"`
}

// Changes is what a manifest or a report says of how results that had changed were found.
type Changes struct {
	Method  string   `json:"method"`
	Reason  string   `json:"reason"`
	KnownTo WallTime `json:"known_to"`
}

// Part is an entry of a manifest.
type Part struct {
	Path string `json:"path"`
	Span
	Rows    int64  `json:"rows"`
	MinID   int64  `json:"min_id"`
	MaxID   int64  `json:"max_id"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Undated bool   `json:"undated"`
	IDs     string `json:"ids"`     // hash of its id set
	Letters string `json:"letters"` // hash of its dead letters
}

// Holds tells whether a result of this date belongs into the part. The zero date
// is that of a result without one.
func (p Part) Holds(date time.Time) bool {
	if p.Undated || date.IsZero() {
		return p.Undated && date.IsZero()
	}
	return p.Span.Holds(date)
}

// Check compares a part's bytes with the size and hash in the manifest.
func (p Part) Check(data []byte) error {
	if sum := sha256.Sum256(data); int64(len(data)) != p.Bytes || hex.EncodeToString(sum[:]) != p.SHA256 {
		return fmt.Errorf("the %d bytes of %s are not those of the manifest", len(data), p.Path)
	}
	return nil
}

// placed tells what is wrong with where a part lies: it must hold time of one
// partition alone, and lie in the folder of that partition, where there are folders.
func (p Part) placed(partition string, folders bool) error {
	folder, start := "", Start(partition, p.To.Add(-time.Second))
	switch {
	case partition == "none":
	case p.Undated:
		folder = "dt=__HIVE_DEFAULT_PARTITION__"
	case !p.From.IsZero() && p.From.Before(start):
		return fmt.Errorf("the part %s, %s, holds more than one %s", p.Path, p.Span, partition)
	default:
		folder = "dt=" + start.Format(time.DateOnly)
	}
	if dir := strings.TrimSuffix(path.Dir(p.Path), "."); folders && dir != folder {
		return fmt.Errorf("the part %s lies in %q and not in %q", p.Path, dir, folder)
	}
	return nil
}

// Tiled tells what is wrong with where parts lie: no two may have time in common,
// and each must lie in its partition. Parts of the same span are right, because a
// window may have too many rows for one object.
func (m Manifest) Tiled(partition string, folders bool) error {
	dated := slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool { return p.Undated })
	slices.SortStableFunc(dated, func(a, b Part) int { return a.From.Compare(b.From.Time) })
	for i := 1; i < len(dated); i++ {
		if a, b := dated[i-1], dated[i]; a.Span != b.Span && a.Meets(b.Span) {
			return fmt.Errorf("the parts %s and %s have time in common", a.Path, b.Path)
		}
	}
	for _, p := range m.Parts {
		if err := p.placed(partition, folders); err != nil {
			return err
		}
	}
	return nil
}

// Start is the beginning of the partition that holds a time, zero where there
// is only one.
func Start(partition string, t time.Time) time.Time {
	y, m, d := t.Date()
	switch partition {
	case "day":
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	case "month":
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	case "year":
		return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}
