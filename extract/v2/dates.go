package v2

import (
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
)

// clock turns instants into wall-clock time of one zone. It remembers the spans of time
// in which the zone's offset was constant, because to look one up takes longer than all
// the rest.
type clock struct {
	zone  *time.Location
	spans [4]offsetSpan
	next  int // index of the span to replace
}

// offsetSpan is a span [from, to) of Unix time in which the offset is constant, in
// seconds. The zero value holds no time.
type offsetSpan struct{ from, to, offset int64 }

// Bounds of Unix time, for spans without a beginning or an end.
const (
	earliest = -1 << 62
	latest   = 1 << 62
)

// use makes c the clock of a zone.
func (c *clock) use(zone *time.Location) {
	if c.zone != zone {
		*c = clock{zone: zone}
	}
}

// offset returns the offset of the zone at an instant of Unix time.
func (c *clock) offset(at int64) int64 {
	for _, s := range c.spans {
		if s.from <= at && at < s.to {
			return s.offset
		}
	}
	t := time.Unix(at, 0).In(c.zone)
	_, seconds := t.Zone()
	from, to := t.ZoneBounds()
	s := offsetSpan{earliest, latest, int64(seconds)}
	if !from.IsZero() {
		s.from = from.Unix()
	}
	if !to.IsZero() {
		s.to = to.Unix()
	}
	c.spans[c.next] = s
	c.next = (c.next + 1) % len(c.spans)
	return s.offset
}

// The longest and the shortest text of an instant without its fraction.
const (
	shortestInstant = len("2006-01-02T15:04:05Z")
	secondsEnd      = len("2006-01-02T15:04:05")
)

// toWall rewrites an instant in place (ISO 8601, service-v2.md, section 6) as the
// account's wall-clock time, and returns the span of that and the instant in Unix time. The
// fraction of the second is cut. A text that is no instant stays as it is; its instant is
// latest.
func (c *clock) toWall(buf []byte, text page.Span) (wall page.Span, instant int64) {
	instant, ok := parseInstant(buf[text.Start:text.End])
	if !ok {
		return text, latest
	}
	at := instant + c.offset(instant)
	year, month, day := civil(floorDiv(at, secondsPerDay))
	if year < 0 || year > 9999 {
		return text, instant
	}
	second := at - floorDiv(at, secondsPerDay)*secondsPerDay
	out := buf[text.Start : int(text.Start)+len(extract.WireTime)]
	pair(out[0:], year/100)
	pair(out[2:], year%100)
	out[4] = '-'
	pair(out[5:], month)
	out[7] = '-'
	pair(out[8:], day)
	out[10] = ' '
	pair(out[11:], second/3600)
	out[13] = ':'
	pair(out[14:], second/60%60)
	out[16] = ':'
	pair(out[17:], second%60)
	return page.Span{Start: text.Start, End: text.Start + int32(len(extract.WireTime))}, instant
}

// pair writes a number below 100 as two digits.
func pair(out []byte, n int64) { out[0], out[1] = '0'+byte(n/10), '0'+byte(n%10) }

// parseInstant reads an instant in UTC or with a numeric offset, in Unix time.
func parseInstant(b []byte) (at int64, ok bool) {
	if len(b) < shortestInstant || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	century, year, month := number2(b, 0), number2(b, 2), number2(b, 5)
	day, hour, minute, second := number2(b, 8), number2(b, 11), number2(b, 14), number2(b, 17)
	if century|year|month|day|hour|minute|second < 0 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	days := daysOf(century*100+year, month, day)
	if y, m, d := civil(days); y != century*100+year || m != month || d != day {
		return 0, false
	}
	zone := secondsEnd
	if b[zone] == '.' {
		if zone = digitsEnd(b, zone+1); zone == secondsEnd+1 {
			return 0, false
		}
	}
	offset, ok := parseOffset(b[zone:])
	return days*secondsPerDay + hour*3600 + minute*60 + second - offset, ok
}

// parseOffset reads Z, or an offset from UTC such as +02:00, in seconds.
func parseOffset(b []byte) (offset int64, ok bool) {
	switch {
	case len(b) == 1:
		return 0, b[0] == 'Z'
	case len(b) != len("+02:00") || b[3] != ':' || b[0] != '+' && b[0] != '-':
		return 0, false
	}
	hours, minutes := number2(b, 1), number2(b, 4)
	if hours|minutes < 0 || hours > 23 || minutes > 59 {
		return 0, false
	}
	offset = hours*3600 + minutes*60
	if b[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// number2 returns the number of two digits at i, -1 if there is none.
func number2(b []byte, i int) int64 {
	tens, ones := b[i]-'0', b[i+1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return int64(tens)*10 + int64(ones)
}

const (
	secondsPerDay = 24 * 3600
	daysPerEra    = 146_097 // an era is 400 years, after which the calendar repeats
	toUnixDays    = 719_468 // days from 1 March of the year 0 to 1 January 1970
)

// daysOf returns the days from 1 January 1970 to a day. The year begins in March for it,
// so that a leap day is the last of its year.
func daysOf(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := floorDiv(year, 400)
	ofEra := year - era*400
	ofYear := (153*(month-3)+2)/5 + day - 1
	return era*daysPerEra + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - toUnixDays
}

// civil returns the day that is some days after 1 January 1970. It undoes daysOf.
func civil(days int64) (year, month, day int64) {
	days += toUnixDays
	era := floorDiv(days, daysPerEra)
	ofEra := days - era*daysPerEra
	yearOfEra := (ofEra - ofEra/1460 + ofEra/36524 - ofEra/146096) / 365
	ofYear := ofEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*ofYear + 2) / 153 // 0 is March
	day = ofYear - (153*shifted+2)/5 + 1
	if month = shifted + 3; month > 12 {
		month -= 12
	}
	year = yearOfEra + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// floorDiv divides and rounds down; b is above 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
