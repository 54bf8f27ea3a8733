package definition

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/formetl/formetl/extract"
)

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
