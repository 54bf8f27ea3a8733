package jsonapi

import (
	"flag"
	"fmt"
	"slices"
)

// What the headers say of the pages.
const (
	PaginationRight   = ""
	PaginationMissing = "missing" // no header
	PaginationZero    = "zero"    // the last page is 0
	PaginationMore    = "more"    // the last page is one too many
	PaginationLess    = "less"    // the last page is one too few
)

// Variants are the shapes of API v2 that are unknown or differ between
// accounts. The zero value is what the newest samples show.
type Variants struct {
	NumberIDs    bool   // result ids are JSON numbers
	NumberMetas  bool   // payment_amount and score are JSON numbers
	Fractions    string // of a second, in dates: "none", "random"; "": .000
	Seconds      bool   // date bounds are compared by the second
	CoarseBounds bool   // date bounds lose their fraction, and dates keep it
	StrictDates  bool   // date bounds with a fraction of a second, or before 1970, are refused
	Pagination   string // headers: "missing", "zero", "more", "less"; "": right
	ClampLimit   bool   // a limit that is too high is lowered, not refused
	HideID       bool   // a view of some columns shows an id only if it names result_id
	FillItems    bool   // items without an answer are shown empty
	OwnPositions bool   // each item of a matrix has its own position
	MixValues    bool   // the values of an answer come in any order
	BareForm     bool   // Get Form answers without a list around the form
	SnakeStats   bool   // results_count and files_size
}

// Flags binds every field to its name.
func (v *Variants) Flags(fs *flag.FlagSet) {
	fs.BoolVar(&v.NumberIDs, "v2-number-ids", v.NumberIDs, "v2: result ids are JSON numbers")
	fs.BoolVar(&v.NumberMetas, "v2-number-metas", v.NumberMetas, "v2: payment_amount and score are JSON numbers")
	fs.StringVar(&v.Fractions, "v2-fractions", v.Fractions, "v2: fractions of seconds: none or random (default .000)")
	fs.BoolVar(&v.Seconds, "v2-seconds", v.Seconds, "v2: date bounds are compared by the second")
	fs.BoolVar(&v.CoarseBounds, "v2-coarse-bounds", v.CoarseBounds, "v2: date bounds lose their fraction, and dates keep it")
	fs.BoolVar(&v.StrictDates, "v2-strict-dates", v.StrictDates, "v2: refuse date bounds with fractions of seconds or before 1970")
	fs.StringVar(&v.Pagination, "v2-pagination", v.Pagination, "v2: headers of the pages: missing, zero, more or less")
	fs.BoolVar(&v.ClampLimit, "v2-clamp-limit", v.ClampLimit, "v2: lower a limit that is too high")
	fs.BoolVar(&v.HideID, "v2-hide-id", v.HideID, "v2: a view of some columns hides the id unless it names result_id")
	fs.BoolVar(&v.FillItems, "v2-fill-items", v.FillItems, "v2: show items without an answer as empty")
	fs.BoolVar(&v.OwnPositions, "v2-own-positions", v.OwnPositions, "v2: each item of a matrix has its own position")
	fs.BoolVar(&v.MixValues, "v2-mix-values", v.MixValues, "v2: the values of an answer come in any order")
	fs.BoolVar(&v.BareForm, "v2-bare-form", v.BareForm, "v2: Get Form answers without a list around the form")
	fs.BoolVar(&v.SnakeStats, "v2-snake-stats", v.SnakeStats, "v2: results_count and files_size")
}

// Validate names the first value that has no meaning.
func (v Variants) Validate() error {
	if !slices.Contains([]string{FractionsZero, FractionsNone, FractionsRandom}, v.Fractions) {
		return fmt.Errorf("faults: v2-fractions=%s; give none or random", v.Fractions)
	}
	known := []string{PaginationRight, PaginationMissing, PaginationZero, PaginationMore, PaginationLess}
	if !slices.Contains(known, v.Pagination) {
		return fmt.Errorf("faults: v2-pagination=%s; give missing, zero, more or less", v.Pagination)
	}
	return nil
}
