package cells

import (
	"strconv"
	"time"
)

// AppendLocal appends the instant of us microseconds since 1970 UTC as a
// spreadsheet reads it: the zone's wall clock without an offset, 2026-01-02
// 03:04:05. A fraction of a second that is not zero is written with three
// digits, or with six if three do not suffice.
func AppendLocal(dst []byte, us int64, zone *time.Location) []byte {
	t := time.UnixMicro(us).In(zone)
	if y := t.Year(); y < 0 || y > 9999 {
		dst = t.AppendFormat(dst, time.DateTime)
	} else {
		_, offset := t.Zone()
		wall := us + int64(offset)*1_000_000
		days := wall / 86_400_000_000
		if wall%86_400_000_000 < 0 {
			days--
		}
		dst = AppendDate(dst, int32(days)) //nolint:gosec // the year has four digits
		dst = append(dst, ' ')
		hour, minute, second := t.Clock()
		dst = append(appendPair(dst, hour), ':')
		dst = append(appendPair(dst, minute), ':')
		dst = appendPair(dst, second)
	}
	fraction, digits := ((us%1_000_000)+1_000_000)%1_000_000, 6
	if fraction == 0 {
		return dst
	}
	if fraction%1000 == 0 {
		fraction, digits = fraction/1000, 3
	}
	text := strconv.FormatInt(1_000_000+fraction, 10)
	return append(append(dst, '.'), text[len(text)-digits:]...)
}

// appendPair appends n as two digits.
func appendPair(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/10), byte('0'+n%10))
}
