package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A feature is something that lives may meet. Each has a name, so that what is
// known to be wrong can be left out while the rest is looked for.
const (
	featureS3          = "s3"          // outputs on a real S3 server
	featureKills       = "kills"       // SIGKILL at fault points, requests and moments
	featureSignals     = "signals"     // SIGTERM and SIGINT
	featureFaults      = "faults"      // busy, cut, slow and reset answers, pages of proxies, outages
	featureEmpty       = "empty"       // an empty body, or a login page, with HTTP 200
	featureQuirks      = "quirks"      // services that ignore bounds of ids, the order or searches
	featureDates       = "dates"       // services that ignore dates
	featureUnsorted    = "unsorted"    // services that ignore fs_sort, or whose results lack date_update
	featureChanges     = "changes"     // results that change while they are read
	featureParts       = "parts"       // parts that are removed or emptied between runs
	featureManifests   = "manifests"   // manifests that are removed or damaged between runs
	featureUnlisted    = "unlisted"    // parts that no manifest lists
	featureForeign     = "foreign"     // files of other programs
	featureExports     = "exports"     // formetl export
	featureMaintenance = "maintenance" // clean, state reset and replay between runs
	featureTogether    = "together"    // two runs of a definition at once
	featureEscapes     = "escapes"     // texts with _xHHHH_ in them, for .xlsx
	featureLong        = "long"        // texts that no cell of a sheet holds, which end a run with 65

	// Results move while others of the same reading go: then the sums of the
	// counts agree although the moved one is lost. Two windows of a day: after
	// day 1 is read, a result of day 2 moves to day 1 and one of day 1 is
	// deleted. A run that asks the service what changed finds it all the same. So
	// lives have this where the service sorts and the definition can be counted,
	// has no `changes: lookback`, and the form has enough results to show that the
	// service sorts. Where one of these fails, the gap stands: a run then says
	// `verified.method: counts`, and its results either move or go.
	featureCompensation = "compensation"

	// Known gaps, which are off until the program closes them.

	// Results move while they are read by a definition whose results cannot be
	// counted (search, view, verify: false).
	featureUncounted = "uncounted"
	// Results come, get another date, or come to match a search, while they are
	// read without a range.
	// One that is dated within a window that was read is then found by its id
	// among those without a date: the run reads these again, and never the
	// window, and ends with 65; with verify: false it writes it as undated.
	featureUndated = "undated"
	// Results go while a service is read whose pages hold fewer than a hundred.
	// A page that is cut short so ends its window for a run that trusts the
	// counts; where as many were deleted meanwhile, the sums agree, and what the
	// page had no room for is lost.
	featureShortPages = "shortpages"
	// A run --full of several outputs without a schema ends early. Where one of
	// them is committed and the rest is cleaned away, they may hold one column
	// as a text and as a list, and the next run ends with 78.
	featureHalfFull = "halffull"
	// Results come, go or move while a service is read that can only be paged
	// by number.
	featureShifting = "shifting"
)

// features tells of each feature, by name, whether lives have it.
type features map[string]bool

// usual tells of each feature whether lives have it where no flag says otherwise.
func usual() features {
	return features{
		featureS3: false, featureKills: true, featureSignals: true, featureFaults: true, featureEmpty: true, featureQuirks: true,
		featureDates: true, featureUnsorted: true, featureChanges: true, featureParts: true, featureManifests: true, featureUnlisted: true,
		featureForeign: true, featureExports: true, featureMaintenance: true, featureTogether: true, featureEscapes: true,
		featureLong: true, featureCompensation: true, featureUncounted: false, featureUndated: false, featureShortPages: false, featureHalfFull: false, featureShifting: false,
	}
}

// choose turns features on and off, as lists of flags say.
func choose(with, without string) (features, error) {
	chosen := usual()
	for list, on := range map[*string]bool{&with: true, &without: false} {
		for name := range strings.SplitSeq(*list, ",") {
			if _, known := chosen[name]; name != "" && !known {
				return nil, fmt.Errorf("there is no feature %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(chosen)), ", "))
			} else if name != "" {
				chosen[name] = on
			}
		}
	}
	return chosen, nil
}
