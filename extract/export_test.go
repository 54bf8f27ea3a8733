package extract

import "time"

// What the tests outside the package look at.

const (
	MostDateChecks = mostDateChecks
	LeastFeedPage  = leastFeedPage
)

var Following = following

func (u Unit) Cut(from, to time.Time) []Window { return tile(Window{from, to}, u.period()) }
