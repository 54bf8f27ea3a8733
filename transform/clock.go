package transform

import (
	"time"

	"github.com/formetl/formetl/extract/page"
)

const (
	daySeconds  = 24 * 60 * 60
	hourSeconds = 60 * 60
)

// clock turns wall-clock times of one zone into instants. It remembers the
// offsets of hours, because results come in order of time. A lookup in the zone's
// table costs more than the rest of the parsing.
type clock struct {
	zone  *time.Location
	hours [64]hourOffset // the last hours that were looked up, by hour modulo 64
}

// hourOffset is the offset that holds throughout one wall-clock hour.
type hourOffset struct {
	hour   int64 // hours of wall-clock time since 1970-01-01 00:00
	offset int64 // seconds east of UTC
	known  bool
}

// instant returns the instant at which the zone shows a wall-clock time, or the
// first of two such instants. It counts seconds since 1970 UTC. wall counts
// seconds since 1970-01-01 00:00:00 in the zone. If the zone skips the time,
// the offset before the gap applies and shifted is true.
func (c *clock) instant(wall int64) (unix int64, shifted bool) {
	hour := floorDiv(wall, hourSeconds)
	slot := &c.hours[hour&63]
	if slot.known && slot.hour == hour {
		return wall - slot.offset, false
	}
	first, last := page.ReadWall(hour*hourSeconds, c.zone), page.ReadWall(hour*hourSeconds+hourSeconds-1, c.zone)
	if !first.Skipped && first == last {
		*slot = hourOffset{hour: hour, offset: first.Offset, known: true}
		return wall - first.Offset, false
	}
	r := page.ReadWall(wall, c.zone) // rare: the hour's offset changes
	return wall - r.Offset, r.Skipped
}

// parseTimestamp reads a time in the forms that the package comment gives and
// returns microseconds since 1970 UTC.
func (c *clock) parseTimestamp(v []byte) (micros int64, shifted bool, reason string) {
	if len(v) < len("2006-01-02 15:04:05") || v[10] != ' ' && v[10] != 'T' {
		return 0, false, reasonTimestamp
	}
	days, reason := parseDate(v[:10])
	seconds, ok := parseClock(v[11:19])
	if reason != "" || !ok {
		return 0, false, reasonTimestamp
	}
	fraction, rest, ok := parseFraction(v[19:])
	if !ok {
		return 0, false, reasonTimestamp
	}
	unix := int64(days)*daySeconds + seconds
	if len(rest) == 0 {
		unix, shifted = c.instant(unix)
	} else if offset, ok := parseOffset(rest); ok {
		unix -= offset
	} else {
		return 0, false, reasonTimestamp
	}
	return unix*1e6 + fraction, shifted, c.year(unix)
}

// The instants whose year is 1 to 9999 in every zone.
const (
	firstSafe = -62135596800 + 2*daySeconds // 0001-01-03 UTC
	lastSafe  = 253402300799 - 2*daySeconds
)

// year returns the reason why an instant does not fit a column, "" if it does. Formats show
// four digits of a year, of UTC or of the zone.
func (c *clock) year(unix int64) (reason string) {
	if unix >= firstSafe && unix <= lastSafe {
		return ""
	}
	utc, here := time.Unix(unix, 0).UTC().Year(), time.Unix(unix, 0).In(c.zone).Year()
	if min(utc, here) < 1 || max(utc, here) > 9999 {
		return reasonYear
	}
	return ""
}

// parseDate reads YYYY-MM-DD as days since 1970-01-01.
func parseDate(v []byte) (days int32, reason string) {
	if len(v) != len("2006-01-02") || v[4] != '-' || v[7] != '-' {
		return 0, reasonDate
	}
	century, ok1 := twoDigits(v[0:2])
	year, ok2 := twoDigits(v[2:4])
	month, ok3 := twoDigits(v[5:7])
	day, ok4 := twoDigits(v[8:10])
	year += century * 100
	at := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	exists := int(at.Month()) == month && at.Day() == day
	if !ok1 || !ok2 || !ok3 || !ok4 || year < 1 || !exists {
		return 0, reasonDate
	}
	return int32(at.Unix() / daySeconds), "" //nolint:gosec // years have four digits
}

// parseClock reads HH:MM:SS as seconds.
func parseClock(v []byte) (seconds int64, ok bool) {
	hour, ok1 := twoDigits(v[0:2])
	minute, ok2 := twoDigits(v[3:5])
	second, ok3 := twoDigits(v[6:8])
	ok = ok1 && ok2 && ok3 && v[2] == ':' && v[5] == ':' && hour < 24 && minute < 60 && second < 60
	return int64(hour)*hourSeconds + int64(minute)*60 + int64(second), ok
}

// parseFraction reads an optional fraction of a second; digits beyond
// microseconds must be zeros.
func parseFraction(v []byte) (micros int64, rest []byte, ok bool) {
	if len(v) == 0 || v[0] != '.' {
		return 0, v, true
	}
	v = v[1:]
	n := 0
	for n < len(v) && digit(v[n]) {
		if n < 6 {
			micros = micros*10 + int64(v[n]-'0')
		} else if v[n] != '0' {
			return 0, nil, false
		}
		n++
	}
	for i := n; i < 6; i++ {
		micros *= 10
	}
	return micros, v[n:], n > 0
}

// parseOffset reads Z or ±HH:MM as seconds east of UTC.
func parseOffset(v []byte) (seconds int64, ok bool) {
	if len(v) == 1 {
		return 0, v[0] == 'Z'
	}
	if len(v) != len("+00:00") || v[0] != '+' && v[0] != '-' || v[3] != ':' {
		return 0, false
	}
	hour, ok1 := twoDigits(v[1:3])
	minute, ok2 := twoDigits(v[4:6])
	seconds = int64(hour)*hourSeconds + int64(minute)*60
	if v[0] == '-' {
		seconds = -seconds
	}
	return seconds, ok1 && ok2 && hour < 24 && minute < 60
}

func twoDigits(v []byte) (int, bool) {
	return int(v[0]-'0')*10 + int(v[1]-'0'), digit(v[0]) && digit(v[1])
}

// floorDiv divides a by b and rounds down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
