package v2

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// resultsParameters returns the parameters of Get Form Results (service-v2.md, section 4). The
// limit is always sent, because without it the service sends pages of 100. Sorting by the result's
// id, the default, is not named, because no name of it is known to every service.
func resultsParameters(q extract.ResultsQuery, zone *time.Location) transport.Parameters {
	ps := constrain(q.Window, q.IDs, zone)
	ps.AddNumber("limit", int64(min(cmp.Or(q.Limit, PageSize), PageSize)))
	ps.AddNumber("page", int64(q.Page))
	ps.Add("sort_id", q.Sort)
	ps.Add("sort_direction", q.Direction())
	for _, c := range q.Search.Where {
		ps = append(ps, transport.Parameter{Name: "search_" + string(c.Operator) + "[" + c.Column + "]", Value: c.Term})
	}
	ps.Add("search_method", q.Search.Method())
	ps.Add("results_view", q.View)
	return ps
}

// searchable returns an error for a criterion that API v2 can express for no column
// (service-v2.md, section 4).
func searchable(c extract.Criterion) error {
	var why string
	switch {
	case c.Operator.Bare():
		why = "it cannot ask whether a column is empty"
	case c.Operator != extract.OpEquals && page.KnownMeta(c.Column):
		why = "such a column can only be searched by equals"
	default:
		return nil
	}
	return cannotSearch(c, why)
}

// Searches tells whether API v2 can express a search, as far as that shows without its answers.
func Searches(s extract.Search) bool {
	return !slices.ContainsFunc(s.Where, func(c extract.Criterion) bool { return searchable(c) != nil })
}

// otherGeneration is the hint for what API v2 cannot do.
const otherGeneration = "ask by API v1, which can do it: add --api v1, or write `api: v1` below `source:` in the definition"

// cannotSearch returns the error for a criterion that API v2 cannot express.
func cannotSearch(c extract.Criterion, why string) error {
	c.Column = cmp.Or(c.Given, c.Column)
	return &transport.Error{Code: 78, Problem: fmt.Sprintf("%s cannot do the search %s: %s", generation, c, why), Remedy: otherGeneration + "; if the service has no API v1, leave this search out, and filter what was exported"}
}

// constrain returns the bounds of results as parameters. All bounds of the service are exclusive,
// and whether it compares fractions of seconds is unknown. So the request asks from a second before
// the window on, and the results of that second (secondBefore) are marked as early
// (service-v2.md, section 9).
func constrain(w extract.Window, ids extract.IDRange, zone *time.Location) (ps transport.Parameters) {
	if !w.From.IsZero() {
		ps.Add("after_date", onWire(instant(w.From, zone).Add(-time.Second)))
	}
	if !w.To.IsZero() {
		ps.Add("before_date", onWire(instant(w.To, zone)))
	}
	ps.AddNumber("after_id", ids.Min-1)
	if ids.Max > 0 {
		ps.AddNumber("before_id", ids.Max+1) // overflows where no bound is needed
	}
	return ps
}

// wireInstant is the layout of a bound in UTC, in whole seconds.
const wireInstant = "2006-01-02T15:04:05Z"

// onWire spells a bound of dates. A bound before 1970 becomes the beginning of 1970: no client
// has ever sent an earlier one, and no result is that old. The bound is not left out, because only
// a bound keeps out results without a date.
func onWire(at time.Time) string {
	return extract.Later(at, extract.Epoch).Format(wireInstant)
}

// secondBefore returns the last second before a window, in Unix time. The service may send the
// results of this second together with those of the window. It is earliest for a window without a
// beginning.
func secondBefore(w extract.Window, zone *time.Location) int64 {
	if w.From.IsZero() {
		return earliest
	}
	return instant(w.From, zone).Unix() - 1
}

// instant returns the first instant at which the clocks of a zone show the wall-clock time
// wall or a later one. So each instant belongs to exactly one of two adjacent windows. If the
// clocks show an hour twice, a window that ends within the hour holds a part of its first pass, and
// the window that reaches beyond the hour holds its whole second pass. A time that the clocks
// skip becomes the moment of the change.
func instant(wall time.Time, zone *time.Location) time.Time {
	r := page.ReadWall(wall.Unix(), zone)
	at := time.Unix(wall.Unix()-r.Offset, 0).In(zone)
	if r.Skipped {
		at, _ = at.ZoneBounds()
	}
	return at.UTC()
}

// Unix times that are before and after all others, for bounds that are missing.
const (
	earliest = -1 << 62
	latest   = 1 << 62
)

// toWall rewrites an instant in buf (ISO 8601, service-v2.md, section 6) in place as the wall-clock
// time of a zone. It returns the span of that time, and the instant in Unix time. Fractions of
// a second are cut off. A text that is no instant is left unchanged; its instant is latest.
func toWall(buf []byte, text page.Span, zone *time.Location) (wall page.Span, instant int64) {
	at, ok := parseInstant(buf[text.Start:text.End])
	if !ok {
		return text, latest
	}
	_, offset := at.In(zone).Zone()
	shown := at.UTC().Add(time.Duration(offset) * time.Second)
	year, month, day := shown.Date()
	if year < 0 || year > 9999 {
		return text, at.Unix()
	}
	hour, minute, second := shown.Clock()
	out := buf[text.Start:]
	wall = page.Span{Start: text.Start, End: text.Start + int32(copy(out, "0000-00-00 00:00:00"))}
	for i, two := range [...]int{year / 100, year % 100, int(month), day, hour, minute, second} {
		place := [...]int{0, 2, 5, 8, 11, 14, 17}[i]
		out[place], out[place+1] = byte('0'+two/10), byte('0'+two%10)
	}
	return wall, at.Unix()
}

// parseInstant reads an instant in UTC or with an offset. It refuses what package time would also
// read: an hour of one digit, a comma before the fraction, and offsets up to 24:60.
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
