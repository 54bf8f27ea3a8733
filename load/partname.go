package load

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// HiveDefaultPartition is the value of dt for results without a date: the
// name that Hive and its readers take for null.
const HiveDefaultPartition = "__HIVE_DEFAULT_PARTITION__"

const (
	partLayout = "20060102T150405"
	dateLayout = "2006-01-02"
	noFrom     = "min" // stands for no lower bound
	noTo       = "max" // stands for no upper bound
	undated    = "undated"
	partPrefix = "part-"
	dtPrefix   = "dt="
)

// PartKey is what the name of a part holds:
//
//	dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet
//	part-min-20260102T000000-000001-0000.csv.gz
//	dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet
type PartKey struct {
	DT         string // value of dt, "" where the dataset has no partitions
	From, To   time.Time
	Undated    bool   // of results without a date; From and To are not used
	Generation int    // of the dataset's parts; a higher one is newer
	N          int    // number of the object within its window
	Extension  string // with its dot: ".parquet", ".csv.gz"
}

// DTValue gives the value of dt for a window. partition is "none" (or ""),
// "day", "month" or "year". The value is the first day of the partition that
// holds the window's beginning. For a window without a beginning it is the
// partition of its last second.
func DTValue(partition string, from, to time.Time) string {
	if partition == "" || partition == "none" {
		return ""
	}
	t := from
	if t.IsZero() {
		if to.IsZero() {
			return HiveDefaultPartition
		}
		t = to.Add(-time.Second)
	}
	y, m, d := t.Date()
	switch partition {
	case "month":
		d = 1
	case "year":
		m, d = time.January, 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Format(dateLayout)
}

// UndatedDT gives the value of dt for results without a date.
func UndatedDT(partition string) string {
	if partition == "" || partition == "none" {
		return ""
	}
	return HiveDefaultPartition
}

// PartName gives the name of a part, relative to its dataset.
func PartName(k PartKey) string {
	var b strings.Builder
	if k.DT != "" {
		b.WriteString(dtPrefix + k.DT + "/")
	}
	b.WriteString(partPrefix)
	if k.Undated {
		b.WriteString(undated)
	} else {
		b.WriteString(bound(k.From, noFrom) + "-" + bound(k.To, noTo))
	}
	fmt.Fprintf(&b, "-%06d-%04d%s", k.Generation, k.N, k.Extension)
	return b.String()
}

func bound(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.Format(partLayout)
}

// ParsePartName reads a name that PartName gave and refuses every other.
// Wall-clock times are returned with the location UTC.
func ParsePartName(name string) (PartKey, error) {
	k, ok := parsePart(name)
	// A name must be the one that PartName gives for its key, so that each key
	// has one name.
	if !ok || PartName(k) != name {
		return PartKey{}, fmt.Errorf("%q is not the name of a part: it should look like dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet", name)
	}
	return k, nil
}

func parsePart(name string) (k PartKey, ok bool) {
	if folder, file, found := strings.Cut(name, "/"); found {
		if k.DT, ok = strings.CutPrefix(folder, dtPrefix); !ok || !validDT(k.DT) {
			return k, false
		}
		name = file
	}
	rest, ok := strings.CutPrefix(name, partPrefix)
	if !ok {
		return k, false
	}
	stem, extension, ok := strings.Cut(rest, ".")
	if !ok || !validExtension(extension) {
		return k, false
	}
	k.Extension = "." + extension
	fields := strings.Split(stem, "-")
	switch {
	case len(fields) == 3 && fields[0] == undated:
		k.Undated = true
	case len(fields) == 4:
		var okFrom, okTo bool
		k.From, okFrom = parseBound(fields[0], noFrom)
		k.To, okTo = parseBound(fields[1], noTo)
		if !okFrom || !okTo {
			return k, false
		}
	default:
		return k, false
	}
	generation, err := strconv.ParseUint(fields[len(fields)-2], 10, 31)
	if err != nil {
		return k, false
	}
	n, err := strconv.ParseUint(fields[len(fields)-1], 10, 31)
	if err != nil {
		return k, false
	}
	k.Generation, k.N = int(generation), int(n)
	return k, true
}

func validDT(dt string) bool {
	if dt == HiveDefaultPartition {
		return true
	}
	_, err := time.Parse(dateLayout, dt)
	return err == nil
}

func validExtension(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '.' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func parseBound(s, none string) (time.Time, bool) {
	if s == none {
		return time.Time{}, true
	}
	t, err := time.Parse(partLayout, s)
	return t, err == nil && !t.IsZero()
}

// NextGeneration gives a generation above that of all parts. Names that are no
// part names are ignored.
func NextGeneration(parts []Part) int {
	highest := 0
	for _, p := range parts {
		if k, err := ParsePartName(p.Path); err == nil {
			highest = max(highest, k.Generation)
		}
	}
	return highest + 1
}
