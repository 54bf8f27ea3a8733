package upkeep

import (
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestReadAgain: one range includes all parts, and what no range names needs a full run. A run of a
// narrower range than the definition's would write a single file anew with less.
func TestReadAgain(t *testing.T) {
	day := func(n int) load.Part {
		from := time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)
		return load.Part{From: load.Wall(from), To: load.Wall(from.AddDate(0, 0, 1))}
	}
	hour, undated, unbounded := day(7), day(1), day(1)
	hour.From = load.Wall(hour.From.Add(time.Hour))
	undated.Undated, unbounded.From = true, load.WallTime{}
	for _, c := range []struct {
		path  string
		parts []load.Part
		want  string
	}{
		{"a/", []load.Part{day(1)}, "--from 2026-01-01T00:00:00 --to 2026-01-02T00:00:00"},
		{"a/", []load.Part{day(5), day(2), day(1)}, "--from 2026-01-01T00:00:00 --to 2026-01-06T00:00:00"},
		{"a/", []load.Part{hour}, "--from 2026-01-07T01:00:00 --to 2026-01-08T00:00:00"},
		{"a/", []load.Part{day(3), unbounded}, full},
		{"a/", []load.Part{day(3), undated}, full},
		{"a.csv", []load.Part{day(5), day(2), day(1)}, ""},
		{"a.csv", []load.Part{day(8)}, ""},
		{"a.csv", []load.Part{day(8), undated}, full},
		{"a.csv", []load.Part{day(0)}, "--from 2025-12-31T00:00:00 --to 2026-01-01T00:00:00"},
		{"a.csv", []load.Part{day(9)}, "--from 2026-01-09T00:00:00 --to 2026-01-10T00:00:00"},
	} {
		def := &definition.Definition{Outputs: []definition.Output{{Path: "lake/"}, {Path: c.path}}}
		def.Extract.From, def.Extract.To = day(1).From.Time, day(9).From.Time
		if got := readAgain(def, c.parts); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
