package definition

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// Range is a span of time that may depend on when it is asked for, such as the last month.
type Range struct{ From, To Bound }

// Bound is one end of a Range: the wall-clock time that it stands for when a clock of the
// account's zone shows now. A nil Bound is none.
type Bound func(now time.Time) time.Time

// At returns the Bound that always stands for t.
func At(t time.Time) Bound { return func(time.Time) time.Time { return t } }

// In returns the window that the range stands for at an instant, in a zone.
func (r Range) In(zone *time.Location, at time.Time) (w extract.Window) {
	now := load.Wall(at.In(zone)).Time
	if r.From != nil {
		w.From = r.From(now)
	}
	if r.To != nil {
		w.To = r.To(now)
	}
	return w
}

var backShape = regexp.MustCompile(`^-(\d{1,5})(m|h|d|w|mo|y)$`)

// ParseBound reads an end of a range: a time as ParseWallTime reads it, or a length of time before
// now, such as -90d. Of days, weeks (w), months (mo) and years (y) before now it is the beginning
// of that day; hours and minutes are exact.
func ParseBound(s string) (Bound, error) {
	b, _, err := parseBound(s)
	return b, err
}

// ParseThrough reads an end of a range that still belongs to the range, in the forms that
// ParseBound reads: a day belongs to it as a whole, a time with its second.
func ParseThrough(s string) (Bound, error) {
	b, isDay, err := parseBound(s)
	if err != nil {
		return nil, err
	}
	return func(now time.Time) time.Time {
		if isDay {
			return b(now).AddDate(0, 0, 1)
		}
		return b(now).Add(time.Second)
	}, nil
}

func parseBound(s string) (b Bound, isDay bool, err error) {
	back := backShape.FindStringSubmatch(s)
	if back == nil && strings.HasPrefix(s, "-") {
		return nil, false, fmt.Errorf("%s is not a length of time before now; write a minus, a number, and m, h, d, w, mo or y (minutes to years), such as -90d", Quote(s))
	}
	if back == nil {
		t, err := ParseWallTime(s)
		return At(t), len(s) == len(time.DateOnly), err
	}
	n, _ := strconv.Atoi(back[1]) // no error: backShape matches at most five digits
	if length := exactUnits[back[2]]; length > 0 {
		return func(now time.Time) time.Time { return now.Add(-time.Duration(n) * length) }, false, nil
	}
	unit := dayUnits[back[2]]
	return func(now time.Time) time.Time {
		today := extract.UnitDay.Start(now)
		t := today.AddDate(0, -n*unit.Months, -n*unit.Days)
		if unit.Months > 0 && t.Day() != today.Day() { // that month is shorter: its last day
			t = t.AddDate(0, 0, -t.Day())
		}
		return t
	}, true, nil
}

// The units of lengths of time before now.
var (
	exactUnits = map[string]time.Duration{"m": time.Minute, "h": time.Hour}
	dayUnits   = map[string]extract.Period{"d": {Days: 1}, "w": {Days: 7}, "mo": {Months: 1}, "y": {Months: 12}}
)

// units are the calendar's units that people name ranges by. A week begins on Monday.
var units = map[string]extract.Period{"day": {Days: 1}, "week": {Days: 7}, "month": {Months: 1}, "quarter": {Months: 3}, "year": {Months: 12}}

// ParseLast reads a range that lies before now: a unit of the calendar is the last whole one, such
// as month, and a length of time reaches up to now, such as 7d; see ParseBound.
func ParseLast(s string) (Range, error) {
	if unit, ok := units[s]; ok {
		return Range{
			From: func(now time.Time) time.Time { return unit.Start(unit.Start(now).Add(-time.Second)) },
			To:   unit.Start,
		}, nil
	}
	if !backShape.MatchString("-"+s) || strings.HasPrefix(s, "0") {
		return Range{}, fmt.Errorf("%s is not a length of time; write %s, or a length such as 7d, 12h or 3mo", Quote(s), unitNames())
	}
	if n, ok := strings.CutSuffix(s, "m"); ok {
		return Range{}, fmt.Errorf("%s is minutes, not months; for months write %smo, for minutes write --from -%s", Quote(s), n, s)
	}
	from, err := ParseBound("-" + s)
	return Range{From: from}, err
}

// ParseThis reads a unit of the calendar, such as month: the range from its beginning up to now.
func ParseThis(s string) (Range, error) {
	unit, ok := units[s]
	if !ok {
		return Range{}, fmt.Errorf("%s is not a unit of the calendar; write one of %s", Quote(s), unitNames())
	}
	return Range{From: unit.Start}, nil
}

func unitNames() string { return strings.Join(slices.Sorted(maps.Keys(units)), ", ") }

// ParseWallTime reads a wall-clock time of the account's zone: a date ("2026-01-01",
// meaning its first second) or a date-time ("2026-01-01 06:00:00"). A date-time may
// have a T instead of the blank and may leave out its seconds. Offsets from UTC are refused,
// because the definition sets the zone. The returned time has the location time.UTC, though it
// is no instant; see extract.Window.
func ParseWallTime(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04"} {
		if len(s) != len(layout) {
			continue
		}
		t, err := time.ParseInLocation(layout, s, time.UTC)
		if err == nil && t.Year() >= 1 {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a valid date; write a date such as 2026-01-31, or a date and time such as 2026-01-31 06:00:00, without an offset or fractions", Quote(s))
}

var (
	windowShape = regexp.MustCompile(`^(\d{1,6})(s|m|h|d|mo)$`)
	// spanShape matches lengths of time in days, hours, minutes and seconds. Years, weeks and
	// milliseconds, which model.ParseDuration would accept, do not match.
	spanShape = regexp.MustCompile(`^(\d{1,5}d)?(\d{1,7}h)?(\d{1,7}m)?(\d{1,7}s)?$`)
)

// ParseWindow reads the size of the windows of time that a run reads: a number with s, m, h, d
// (calendar days) or mo (calendar months), or "auto", which is the zero Step.
func ParseWindow(s string) (extract.Period, error) {
	if s == "auto" {
		return extract.Period{}, nil
	}
	const remedy = "write auto, or a number and s, m, h, d or mo (seconds to months), such as 6h, 7d or 1mo"
	parts := windowShape.FindStringSubmatch(s)
	n := 0
	if parts != nil {
		n, _ = strconv.Atoi(parts[1]) // no error: windowShape matches at most six digits
	}
	if n == 0 {
		return extract.Period{}, fmt.Errorf("%s is not a window size; %s", Quote(s), remedy)
	}
	return map[string]extract.Period{
		"mo": {Months: n}, "d": {Days: n}, "h": {Seconds: n * 3600}, "m": {Seconds: n * 60}, "s": {Seconds: n},
	}[parts[2]], nil
}

// ParseSpan reads a length of time: "3d", "12h", "1h30m", "1d12h", "30s". A
// day is 24 hours of wall-clock time.
func ParseSpan(s string) (time.Duration, error) {
	const remedy = "write a number and d, h, m or s (days to seconds), such as 3d, 12h or 30s"
	if s == "" || s != "0" && !spanShape.MatchString(s) {
		return 0, fmt.Errorf("%s is not a length of time; %s", Quote(s), remedy)
	}
	d, err := model.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%s is too long; %s", Quote(s), remedy)
	}
	return time.Duration(d), nil
}
