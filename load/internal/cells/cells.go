// Package cells is how formats read the rows that they write. It renders values as the text
// of a cell, for CSV, NDJSON, JSON and sheets. As in strconv, every function that appends
// returns dst, and does not allocate if dst has room. The package does not quote CSV fields.
// It also tells how lists are shown in a table, what spreadsheets take, and which texts they
// would run as a formula. A format whose bytes depend on where a batch ends takes its rows by
// Steps. Begin reading with JSON, which renders a column, and Fields.
package cells

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// AppendFloat appends the shortest decimal that parses back to f, as JavaScript
// and encoding/json write it. Magnitudes in [1e-6, 1e21) have plain digits, and
// others an exponent. Negative zero is -0.0, because some readers (DuckDB) take
// -0 for an integer. f must be finite.
func AppendFloat(dst []byte, f float64) []byte {
	if f == 0 && math.Signbit(f) {
		return append(dst, "-0.0"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	// strconv writes a small exponent with two digits (1e-07). Other JSON
	// writers give the shorter form, so the zero is removed.
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// AppendTimestamp appends the instant of us microseconds since 1970 UTC as RFC 3339 with the
// zone's offset. Six digits of a second's fraction follow only if they are not zero. RFC 3339
// allows no seconds in an offset. If the zone's offset has seconds (local mean time, before
// about 1900), the instant is written in UTC, so that it stays exact.
func AppendTimestamp(dst []byte, us int64, zone *time.Location) []byte {
	t := time.UnixMicro(us).In(zone)
	if _, offset := t.Zone(); offset%60 != 0 {
		t = t.UTC()
	}
	if us%1_000_000 == 0 {
		return t.AppendFormat(dst, time.RFC3339)
	}
	return t.AppendFormat(dst, "2006-01-02T15:04:05.000000Z07:00")
}

// AppendLocal appends the instant of us microseconds since 1970 UTC as the
// zone's wall-clock time without an offset. Spreadsheets read this form:
// 2026-01-02 03:04:05. A fraction of a second that is not zero has three
// digits, or six if three do not suffice.
func AppendLocal(dst []byte, us int64, zone *time.Location) []byte {
	t := time.UnixMicro(us).In(zone)
	switch fraction := us % 1_000_000; {
	case fraction == 0:
		return t.AppendFormat(dst, time.DateTime)
	case fraction%1000 == 0:
		return t.AppendFormat(dst, time.DateTime+".000")
	}
	return t.AppendFormat(dst, time.DateTime+".000000")
}

// AppendDate appends the day that is days after 1970-01-01 as YYYY-MM-DD.
func AppendDate(dst []byte, days int32) []byte {
	return time.Unix(int64(days)*86400, 0).UTC().AppendFormat(dst, time.DateOnly)
}

// AppendDecimal appends n / 10^scale with exactly scale digits after the
// point, and at least one before it. scale must not be negative.
func AppendDecimal(dst []byte, n decimal128.Num, scale int) []byte {
	start := len(dst)
	if low := int64(n.LowBits()); n.HighBits() == low>>63 {
		dst = strconv.AppendInt(dst, low, 10)
	} else {
		dst = n.BigInt().Append(dst, 10)
	}
	if scale == 0 {
		return dst
	}
	if dst[start] == '-' {
		start++
	}
	for len(dst)-start <= scale {
		dst = slices.Insert(dst, start, '0')
	}
	return slices.Insert(dst, len(dst)-scale, '.')
}
