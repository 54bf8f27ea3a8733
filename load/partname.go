package load

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// HiveDefaultPartition is the value of dt for results without a date: the
// name that Hive and its readers take for null.
const HiveDefaultPartition = "__HIVE_DEFAULT_PARTITION__"

const (
	partLayout = "20060102T150405"
	noFrom     = "min" // stands in a name for no lower bound
	noTo       = "max" // stands in a name for no upper bound
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
	DT         string // value of the partition key dt, "" without partitions
	From, To   time.Time
	Undated    bool   // the part is of results without a date; From and To are not used
	Generation int    // a part with a higher generation is newer
	N          int    // number of the part within its window
	Extension  string // extension of the part with its dot: ".parquet", ".csv.gz"
}

// DTValue returns the value of the partition key dt for results of a window that
// ends at to. The zero time stands for results without a date. partition is "none"
// (or ""), "day", "month" or "year"; no window crosses its borders. The value is
// the first day of the partition that holds the window's last second.
func DTValue(partition string, to time.Time) string {
	if partition == "" || partition == "none" {
		return ""
	}
	if to.IsZero() {
		return HiveDefaultPartition
	}
	y, m, d := to.Add(-time.Second).Date()
	switch partition {
	case "month":
		d = 1
	case "year":
		m, d = time.January, 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

// PartName returns the name of a part, relative to its dataset.
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

// partStart is a part's name without its extension: dt, from, to, generation and number.
const partStart = `^(?:dt=([^/]+)/)?part-(?:undated|(min|\d{8}T\d{6})-(max|\d{8}T\d{6}))-(\d+)-(\d+)`

// partShape divides a part's name into the fields of partStart and the extension.
var partShape = regexp.MustCompile(partStart + `(\.[a-z0-9.]+)$`)

// likePart matches the names of parts and of copies beside them, such as part-…-0000 (copy).csv, which
// a reader's glob would take for parts.
var likePart = regexp.MustCompile(partStart + `[^/]*$`)

// ParsePartName reads a name that PartName returned and refuses every other
// name. It returns wall-clock times with the location UTC.
func ParsePartName(name string) (PartKey, error) {
	if m := partShape.FindStringSubmatch(name); m != nil {
		// A part of the name that cannot be read, or is written in another way,
		// makes the name differ from PartName(k). So the errors can be ignored.
		from, _ := time.Parse(partLayout, m[2])
		to, _ := time.Parse(partLayout, m[3])
		generation, _ := strconv.ParseUint(m[4], 10, 31)
		n, _ := strconv.ParseUint(m[5], 10, 31)
		k := PartKey{DT: m[1], From: from, To: to, Undated: m[2] == "", Generation: int(generation), N: int(n), Extension: m[6]}
		if validDT(k.DT) && PartName(k) == name {
			return k, nil
		}
	}
	return PartKey{}, fmt.Errorf("%q is not the name of a part: it should look like dt=2026-01-01/part-20260101T000000-20260102T000000-000001-0000.parquet", name)
}

func validDT(dt string) bool {
	_, err := time.Parse(time.DateOnly, dt)
	return err == nil || dt == "" || dt == HiveDefaultPartition
}

// NextGeneration returns a generation above that of all parts that a dataset has or had. m is
// the dataset's manifest, nil for none, and unlisted are parts that m does not list.
func NextGeneration(m *Manifest, unlisted []Object) int {
	highest := 0
	names := NamesOf(unlisted)
	if m != nil {
		highest = m.Generation
		for _, p := range m.Parts {
			names = append(names, p.Path)
		}
	}
	for _, name := range names {
		if k, err := ParsePartName(name); err == nil {
			highest = max(highest, k.Generation)
		}
	}
	return highest + 1
}
