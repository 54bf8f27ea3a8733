package readback

import "time"

// Instant is when the clocks of a zone show a wall-clock time, which is given in
// UTC. Of a time that they show twice it is the first instant. A time that they
// skip is moved forward by the gap.
func Instant(wall time.Time, zone *time.Location) time.Time {
	const apart = 36 * time.Hour // more than any offset, and less than between two changes of the clocks
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
