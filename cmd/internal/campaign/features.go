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
	featureV2          = "v2"          // the JSON generation, in half of the lives
	featureUncountable = "uncountable" // services of the JSON generation whose headers tell no counts, or wrong ones
	featureQuirks      = "quirks"      // services that ignore bounds of ids, the order or searches
	featureDates       = "dates"       // services that ignore dates
	featureUnsorted    = "unsorted"    // services that ignore fs_sort, or whose results lack date_update
	featureChanges     = "changes"     // results that change while they are read
	featureRestless    = "restless"    // results that change before every request of a run, which may end with 75
	featureParts       = "parts"       // parts that are removed or emptied between runs
	featureManifests   = "manifests"   // manifests that are removed or damaged between runs
	featureUnlisted    = "unlisted"    // parts that no manifest lists
	featureForeign     = "foreign"     // files of other programs
	featureExports     = "exports"     // formetl export
	featureMaintenance = "maintenance" // clean, state reset and replay between runs
	featureTogether    = "together"    // two runs of a definition at once
	featureHourly      = "hourly"      // runs hour by hour, while the clocks of the zone change
	featureSkew        = "skew"        // runs whose machine has a wrong clock
	featureBudget      = "budget"      // days with few requests
	featureBursts      = "bursts"      // hundreds of results that come or change between two runs
	featureGenerations = "generations" // runs that ask by another generation than the one before
	featureForgets     = "forgets"     // a service that sorts, and in one run does not
	featureEscapes     = "escapes"     // texts with _xHHHH_ in them, for .xlsx
	featureLong        = "long"        // texts that no cell of a sheet holds, which end a run with 65

	// A run --full of several outputs without a schema ends early. Where one of
	// them is committed and the rest is cleaned away, they may hold one column
	// as a text and as a list. The next run then replaces everything.
	featureHalfFull = "halffull"

	// Results move while others of the same reading go: then the sums of the
	// counts agree although the moved one is lost. Two windows of a day: after
	// day 1 is read, a result of day 2 moves to day 1 and one of day 1 is
	// deleted. A run that asks the service what changed finds it all the same. So
	// lives have this where it can be asked, see asks. Elsewhere results either move
	// or go: a run says `verified.method: counts` there and promises no more.
	featureCompensation = "compensation"

	// Results move while they are read by a definition whose results cannot be
	// counted (search, view, verify: false), where the service can be asked what
	// changed. Elsewhere the last line of a run says what was not proven.
	featureUncounted = "uncounted"
	// Results come, get another date, or come to match a search, while they are
	// read without a range.
	featureUndated = "undated"
	// Results go while a service is read whose pages hold fewer than a hundred.
	featureShortPages = "shortpages"
	// Results come, go or move while a service is read that breaks its
	// specification. Such a run may end with 65, and writes nothing that is wrong.
	featureShifting = "shifting"
)

// breaking are the features whose services break the specification, and disturbing
// those that keep a run from its end. Lives without both are lawful: every run of theirs
// ends with 0, and with 75 only where a change comes with every request.
var (
	breaking   = []string{featureQuirks, featureDates, featureUnsorted, featureShifting, featureForgets}
	disturbing = []string{
		featureKills, featureSignals, featureFaults, featureEmpty, featureParts, featureManifests, featureUnlisted, featureForeign, featureTogether, featureLong,
		featureBudget,
	}
)

// featureLawful is on where the flag -lawful is given: results change under most runs.
const featureLawful = "lawful"

// features tells of each feature, by name, whether lives have it.
type features map[string]bool

// usual tells of each feature whether lives have it where no flag says otherwise.
func usual() features {
	f := features{}
	for _, name := range []string{
		featureS3, featureKills, featureSignals, featureFaults, featureEmpty, featureV2, featureUncountable, featureQuirks,
		featureDates, featureUnsorted, featureChanges, featureRestless, featureParts, featureManifests, featureUnlisted,
		featureForeign, featureExports, featureMaintenance, featureTogether, featureEscapes,
		featureLong, featureCompensation, featureUncounted, featureUndated, featureShortPages, featureHalfFull, featureShifting,
		featureHourly, featureSkew, featureBudget, featureBursts, featureForgets, featureGenerations,
	} {
		f[name] = name != featureS3
	}
	return f
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
