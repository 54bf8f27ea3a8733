package readback

import "time"

// Instant is the instant of a wall clock, whose vessel is UTC. One that a zone
// shows twice is the first of the two; one that it skips is moved forward by
// the gap.
func Instant(wall time.Time, zone *time.Location) time.Time {
	const apart = 36 * time.Hour // further than any offset, and closer than two changes
	_, before := wall.Add(-apart).In(zone).Zone()
	_, after := wall.Add(apart).In(zone).Zone()
	for _, offset := range []int{before, after} {
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if at.Format(wallLayout) == wall.Format(wallLayout) {
			return at
		}
	}
	return wall.Add(-time.Duration(before) * time.Second).In(zone)
}
