package upkeep

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

func wall(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.DateTime, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestJudgeZone: a date in the future proves a wrong zone, and nothing more is claimed than
// the dates show.
func TestJudgeZone(t *testing.T) {
	const minute = time.Minute
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 15, 17, 0, 0, 0, time.UTC) // 12:00 in Chicago
	every := func(first, gap time.Duration, n int) (ages []time.Duration) {
		for i := range n {
			ages = append(ages, first+time.Duration(i)*gap)
		}
		return ages
	}
	for _, c := range []struct {
		name  string
		ages  []time.Duration // by the clock of Chicago; negative lies in the future
		ahead time.Duration   // of our clock
		want  CheckState
		tells string
	}{
		{"fresh", []time.Duration{minute, time.Hour}, 0, OK, "1 minute old"},
		{"hours old", []time.Duration{20 * time.Hour}, 0, OK, "20 hours old"},
		{"a service's clock that is minutes off", []time.Duration{-4 * minute}, 0, OK, "no date is in the future"},
		{"the account is an hour further east", []time.Duration{-57 * minute, 2 * minute}, 0, Failed, "57 minutes in the future in America/Chicago"},
		{"the account is half an hour further east", []time.Duration{-10 * minute}, 0, Failed, "10 minutes in the future"},
		{"the account is in Auckland", []time.Duration{-17 * time.Hour}, 0, Failed, "17 hours in the future"},
		{"old", []time.Duration{27 * time.Hour}, 0, NotChecked, "only a change of the last day can show"},
		{"imported for the future", []time.Duration{-400 * time.Hour}, 0, Warning, "more than a day in the future"},
		{"one imported for the future", []time.Duration{-400 * time.Hour, 10 * minute}, 0, OK, "10 minutes old"},
		{"busy", every(0, minute, 20), 0, OK, "no date is in the future"},
		{"busy until half an hour ago", every(30*minute, minute, 20), 0, OK, "30 minutes old"},
		{"not busy enough to tell", every(61*minute, 6*minute, 20), 0, OK, "61 minutes old"},
		{"too few to tell", every(61*minute, minute, 4), 0, OK, "61 minutes old"},
		{"our clock is ahead", []time.Duration{minute}, 3 * time.Hour, OK, "1 minute old"},
		{"our clock is behind", []time.Duration{minute}, -3 * time.Hour, NotChecked, "this machine's clock and the service's differ"},
		{"our clock is behind, and the zone is wrong", []time.Duration{-57 * minute}, -3 * time.Hour, Failed, "57 minutes in the future"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dates := make([]time.Time, 0, len(c.ages))
			for _, age := range c.ages {
				dates = append(dates, load.Wall(now.In(chicago)).Add(-age))
			}
			got := judgeZone(chicago, "form1", dates, now.Add(c.ahead), now)
			if got.State != c.want || !strings.Contains(got.Detail, c.tells) || got.Of != "form1" {
				t.Errorf("%s: %s", got.State, got.Detail)
			}
			fault := c.want == Failed
			if (got.Cure != "") != (fault || c.want == Warning) || (got.Err != nil) != fault {
				t.Errorf("cure %q, error %v", got.Cure, got.Err)
			}
		})
	}
}

// TestJudgeZoneAfterSummer: when clocks are set back, dates of the hour before look later
// than the present.
func TestJudgeZoneAfterSummer(t *testing.T) {
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	back := time.Date(2026, 11, 1, 7, 5, 0, 0, time.UTC) // 1:05 for the second time
	if got := judgeZone(chicago, "form1", []time.Time{wall(t, "2026-11-01 01:58:00")}, back, back); got.State != OK {
		t.Errorf("after clocks were set back: %s", got.Detail)
	}
	if got := judgeZone(chicago, "form1", []time.Time{wall(t, "2026-11-01 02:20:00")}, back, back); got.State != Failed {
		t.Errorf("after clocks were set back, 75 minutes ahead: %s", got.Detail)
	}
}

// TestJudgeClock: what a full second of the header explains is no difference.
func TestJudgeClock(t *testing.T) {
	date := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		came  time.Duration // after date, by our clock
		want  CheckState
		tells string
	}{
		{"same", 100 * time.Millisecond, OK, "agree within 1 second"},
		{"half a minute ahead", 31 * time.Second, OK, "within 30 seconds"},
		{"two minutes ahead", 2 * time.Minute, Warning, "2 minutes ahead of the service's"},
		{"two minutes behind", -2 * time.Minute, Warning, "2 minutes behind the service's"},
		{"hours ahead", 3*time.Hour + time.Second, Failed, "3 hours ahead of the service's: 2026-06-15T15:00:01Z here, 2026-06-15T12:00:00Z"},
		{"days behind", -72 * time.Hour, Failed, "3 days behind"},
	} {
		got := judgeClock(date, date.Add(c.came))
		if got.State != c.want || !strings.Contains(got.Detail, c.tells) || (got.Cure != "") != (c.want != OK) || (got.Err != nil) != (c.want == Failed) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestJudgeSpace compares free space with what a run needs.
func TestJudgeSpace(t *testing.T) {
	const gb = 1 << 30
	for _, c := range []struct {
		free, need int64
		want       CheckState
	}{
		{10 * gb, 0, OK},
		{10 * gb, gb, OK},
		{10 * gb, 6 * gb, Warning},
		{10 * gb, 11 * gb, Failed},
		{99 << 20, 0, Warning},
		{101 << 20, 0, OK},
		{0, 0, Failed},
	} {
		got := judgeSpace(disk{"/lake", c.free, c.need})
		full := errors.Is(got.Err, load.ErrFailed)
		if got.State != c.want || full != (c.want == Failed) || (got.Cure != "") != (c.want != OK) {
			t.Errorf("%d free of %d: %+v", c.free, c.need, got)
		}
	}
}
