package output

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

func day(n int) load.Part {
	from := time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)
	return load.Part{From: load.Wall(from), To: load.Wall(from.AddDate(0, 0, 1))}
}

func TestUnlistedPartsAreNamed(t *testing.T) {
	i := load.Inventory{}
	for range 120 {
		i.Unlisted = append(i.Unlisted, load.Object{Name: "part-min-max-000001-0000.csv"})
	}
	err := Unlisted(&definition.Definition{File: "x.yaml"}, "lake/feedback/", i)
	for _, say := range []string{"lake/feedback/ holds 120 parts", "part-min-max-000001-0000.csv and 20 more;", "`formetl run x.yaml --full`", "`formetl clean x.yaml --unlisted`"} {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%q is not said: %v", say, err)
		}
	}
}

// TestDamagedPartsCure: spans that meet are one range, and what no range names
// needs a full run.
func TestDamagedPartsCure(t *testing.T) {
	hour := day(7)
	hour.From.Time = hour.From.Add(3600e9)
	undated, unbounded := day(1), day(1)
	undated.Undated, unbounded.From = true, load.WallTime{}
	for want, parts := range map[string][]load.Part{
		"by `formetl run x.yaml --from 2026-01-01 --to 2026-01-02`":                                                                {day(1)},
		"by `formetl run x.yaml --from 2026-01-01 --to 2026-01-03`, and by `formetl run x.yaml --from 2026-01-05 --to 2026-01-06`": {day(5), day(2), day(1)},
		"by `formetl run x.yaml --from 2026-01-07T01:00:00 --to 2026-01-08`":                                                       {hour},
		"again by `formetl run x.yaml --full`":                                                                                     {day(3), unbounded},
		"by `formetl run x.yaml --full`":                                                                                           {day(3), undated},
	} {
		damaged := make([]load.DamagedPart, 0, len(parts))
		for _, p := range parts {
			damaged = append(damaged, load.DamagedPart{Part: p})
		}
		e := damagedParts("lake/", damaged, func(flags string) string { return "formetl run x.yaml " + flags })
		if !strings.HasSuffix(e.Error(), want) {
			t.Errorf("%v, want %s", e, want)
		}
	}
}
