package load

import (
	"encoding/json"
	"fmt"
	"time"
)

// WallTime is wall-clock time of the account's zone at one-second resolution,
// written as "2026-01-01 00:00:00". It is not an instant: its location is
// always UTC, whatever the zone. The zero WallTime means no bound and is
// written as null.
type WallTime struct{ time.Time }

// Wall gives the wall-clock time that t shows in its location. The zero time
// means no bound.
func Wall(t time.Time) WallTime {
	if t.IsZero() {
		return WallTime{}
	}
	y, m, d := t.Date()
	return WallTime{time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)}
}

// String returns the time as "2026-01-01 00:00:00", or ".." for no bound.
func (w WallTime) String() string {
	if w.IsZero() {
		return ".."
	}
	return w.Format(time.DateTime)
}

// MarshalJSON returns the time as a JSON string, or null for no bound.
func (w WallTime) MarshalJSON() ([]byte, error) {
	if w.IsZero() {
		return []byte("null"), nil
	}
	if y := w.Year(); y < 0 || y > 9999 {
		return nil, fmt.Errorf("the year %d cannot be written with four digits", y)
	}
	return []byte(`"` + w.Format(time.DateTime) + `"`), nil
}

// UnmarshalJSON reads a time that MarshalJSON wrote, and nothing else.
func (w *WallTime) UnmarshalJSON(data []byte) error {
	var s *string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s == nil {
		*w = WallTime{}
		return nil
	}
	t, err := time.Parse(time.DateTime, *s)
	if err != nil || t.Format(time.DateTime) != *s {
		return fmt.Errorf("%q is not a time such as \"2026-01-01 00:00:00\"", *s)
	}
	*w = WallTime{t}
	return nil
}
