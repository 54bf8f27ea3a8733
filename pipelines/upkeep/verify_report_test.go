package upkeep

import (
	"slices"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// TestReadAgain: spans that meet are one range, and what no range names needs a full run.
func TestReadAgain(t *testing.T) {
	day := func(n int) load.Part {
		from := time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)
		return load.Part{From: load.Wall(from), To: load.Wall(from.AddDate(0, 0, 1))}
	}
	hour, undated, unbounded := day(7), day(1), day(1)
	hour.From = load.Wall(hour.From.Add(time.Hour))
	undated.Undated, unbounded.From = true, load.WallTime{}
	for _, c := range []struct {
		parts []load.Part
		want  []string
	}{
		{[]load.Part{day(1)}, []string{"--from 2026-01-01 --to 2026-01-02"}},
		{[]load.Part{day(5), day(2), day(1)}, []string{"--from 2026-01-01 --to 2026-01-03", "--from 2026-01-05 --to 2026-01-06"}},
		{[]load.Part{hour}, []string{"--from 2026-01-07T01:00:00 --to 2026-01-08"}},
		{[]load.Part{day(3), unbounded}, []string{"--full"}},
		{[]load.Part{day(3), undated}, []string{"--full"}},
	} {
		if got := readAgain(c.parts); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
