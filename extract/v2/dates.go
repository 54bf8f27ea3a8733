package v2

import (
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
)

// Bounds of Unix time, for what has no beginning or no end.
const (
	earliest = -1 << 62
	latest   = 1 << 62
)

// toWall rewrites an instant in place (ISO 8601, service-v2.md, section 6) as the wall-clock
// time of a zone, and returns the span of that and the instant in Unix time. The fraction of
// the second is cut. A text that is no instant stays as it is; its instant is latest.
func toWall(buf []byte, text page.Span, zone *time.Location) (wall page.Span, instant int64) {
	at, ok := parseInstant(buf[text.Start:text.End])
	if !ok {
		return text, latest
	}
	at = at.In(zone)
	if year := at.Year(); year < 0 || year > 9999 {
		return text, at.Unix()
	}
	out := at.AppendFormat(buf[:text.Start], extract.WireTime) // shorter than any instant
	return page.Span{Start: text.Start, End: int32(len(out))}, at.Unix()
}

// parseInstant reads an instant in UTC or with an offset. Package time would also read an
// hour of one digit, a comma before the fraction and offsets up to 24:60.
func parseInstant(b []byte) (at time.Time, ok bool) {
	if len(b) < len("2006-01-02T15:04:05Z") || b[len("2006-01-02T15")] != ':' || b[len("2006-01-02T15:04:05")] == ',' {
		return at, false
	}
	if n := len(b); b[n-1] != 'Z' && (string(b[n-len("00:00"):n-len(":00")]) > "23" || b[n-len("00")] > '5') {
		return at, false
	}
	err := at.UnmarshalText(b)
	return at, err == nil
}
