package page

import "time"

// farthest is more than any zone was ever away from UTC (Manila was at -15:56).
const farthest = 16 * 60 * 60

// WallReading is the offset from UTC by which a zone's wall-clock time is read as an instant.
type WallReading struct {
	Offset int64 // seconds east of UTC
	Since  int64 // the Unix time at which the zone began to have that offset
	// Skipped tells that the zone's clocks never show the time, because they were set forward over
	// it. Offset is then the offset before the change, so the time reads as one after the gap.
	Skipped bool
}

// ReadWall reads a wall-clock time of a zone, in seconds since 1970-01-01 00:00:00 by the zone's
// clocks. If the clocks show the time twice, ReadWall takes the first: it goes in order through
// the spans of constant offset that may show the time.
func ReadWall(wall int64, zone *time.Location) WallReading {
	var before WallReading
	at := time.Unix(wall-farthest, 0).In(zone)
	for {
		start, end := at.ZoneBounds()
		if !end.IsZero() && !end.After(at) {
			// Go gives a leap year 365 days where a zone's file holds a rule for it, and so
			// returns an end that has passed.
			end = at.Add(24 * time.Hour)
		}
		_, offset := at.Zone()
		r := WallReading{Offset: int64(offset), Since: start.Unix()}
		unix := wall - r.Offset
		if !start.IsZero() && unix < start.Unix() {
			before.Skipped = true // the time lies in the gap between the span before and this one
			return before
		}
		if end.IsZero() || unix < end.Unix() {
			return r
		}
		before, at = r, end
	}
}
