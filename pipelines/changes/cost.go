package changes

import (
	"time"

	"github.com/formetl/formetl/load"
)

// Requests of Get Results that Ask sends besides those for the feed's pages.
const (
	checkRequests   = 1 // whether a result without a date_update is at the other end
	witnessRequests = 2 // whether the service sorts by other metas
)

// MostRequests returns how many Get Results requests Ask sends at most at the
// instant now, if the feed has one page. base is what Known returned, and later is
// Since.Later. Without a witness the service shows perhaps that it sorts, and perhaps not.
func MostRequests(base load.Changes, now time.Time, later bool) int {
	check := 0
	if later {
		check = checkRequests
	}
	recent := now.Sub(base.WitnessAt).Abs() < daily
	switch {
	case recent && base.Witness == "":
		return 0 // a run of the last day found that the service does not tell
	case recent:
		return 1
	case base.Witness != "":
		return 1 + check
	}
	return 1 + check + witnessRequests
}
