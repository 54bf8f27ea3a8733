package audit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/formetl/formetl/load"
)

// Kind says what a problem is about.
type Kind string

// The kinds of problems.
const (
	Missing    Kind = "missing"    // the manifest lists the part, and it is not there
	Length     Kind = "length"     // it has another length than the manifest says
	Bytes      Kind = "sha256"     // its length is right, and its bytes are others
	Unreadable Kind = "unreadable" // its bytes are right, and it is no file of its format
	Rows       Kind = "rows"       // it holds another number of rows
	IDs        Kind = "ids"        // its ids are not those of the manifest or of its id set
	Letters    Kind = "letters"    // its dead letters are missing or damaged
	Twice      Kind = "twice"      // a result is in the dataset more than once
	Manifest   Kind = "manifest"   // the manifest contradicts itself, or is another run's
	Unlisted   Kind = "unlisted"   // the manifest does not list the object, and readers that glob take it for data
	Count      Kind = "count"      // the service counts another number of results
)

// Problem is one thing that is not as the manifest says.
type Problem struct {
	Kind  Kind       `json:"kind"`
	Part  string     `json:"part,omitempty"` // its path within the dataset, or the file's name
	Range load.Range `json:"range"`          // the part's window; null is no bound
	Text  string     `json:"problem"`

	mend   load.Part // the part to read again, if Part is one of the manifest
	byHand bool      // no command mends it; Text says what to do
}

// Remedy is a command that mends something, once a definition is named to it.
type Remedy struct {
	Command string // of formetl, such as "run"
	Flags   string // "" for none
}

// Report is what a check of one output found.
type Report struct {
	Path     string    `json:"path"`
	Form     string    `json:"form"`
	Pipeline string    `json:"pipeline"`
	RunID    string    `json:"run_id"`
	Parts    int       `json:"parts"`
	Rows     int64     `json:"rows"`  // that were found in sound parts
	Bytes    int64     `json:"bytes"` // of the parts, as the manifest says
	Problems []Problem `json:"problems"`
	// Notes say what could not be checked, and why.
	Notes []string `json:"notes"`
	// Covers is the range from the first window of the parts to the last one. Undated tells
	// that the parts also hold the results without a date, which no range includes.
	Covers  load.Range `json:"range"`
	Undated bool       `json:"undated"`
	// Mend are the commands that mend what is damaged, in the order in which to give them.
	// It is nil where none does.
	Mend []Remedy `json:"-"`

	Manifest *load.Manifest `json:"-"`
	dataset  bool
	// begun tells that parts lie there, with a manifest or without.
	begun bool
}

// Sound tells whether the check found nothing wrong.
func (r *Report) Sound() bool { return len(r.Problems) == 0 }

// Nothing tells that neither a manifest nor a part lies at the output.
func (r *Report) Nothing() bool { return r.Manifest == nil && !r.begun }

// Single tells whether the output is a single file.
func (r *Report) Single() bool { return !r.dataset }

// Damaged returns the parts that have problems, in order of time.
func (r *Report) Damaged() (parts []load.Part) {
	for _, p := range r.Problems {
		if p.mend.Path != "" {
			parts = append(parts, p.mend)
		}
	}
	return parts
}

// Add adds a problem of a part of the manifest.
func (r *Report) Add(kind Kind, p load.Part, format string, values ...any) {
	r.Problems = append(r.Problems, Problem{Kind: kind, Part: p.Path, Range: load.Range{From: p.From, To: p.To}, Text: fmt.Sprintf(format, values...), mend: p})
}

// About adds a problem of the whole output.
func (r *Report) About(kind Kind, format string, values ...any) {
	r.Problems = append(r.Problems, Problem{Kind: kind, Text: fmt.Sprintf(format, values...)})
}

// Finish sorts the problems, and says how to mend them.
func (r *Report) Finish() {
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		if by := a.Range.From.Compare(b.Range.From.Time); by != 0 {
			return by
		}
		return cmp.Compare(a.Part, b.Part)
	})
	parts := r.Damaged()
	whole := slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.mend.Path == "" && p.Kind != Unlisted && !p.byHand })
	switch {
	case !whole && len(parts) == 0:
		r.MendByRuns()
	case !r.dataset || whole && !r.begun: // a file is written anew by every run
		r.MendByRuns("")
	case whole:
		r.MendByRuns(full)
	default:
		r.MendByRuns(load.ReadAgain(parts)...)
	}
}

// MendByRuns says that runs with these flags write anew what is damaged. "" is a run without
// flags. Unlisted parts are removed before, because a run ends where they lie. A run with
// --full removes them itself.
func (r *Report) MendByRuns(flags ...string) {
	r.Mend = nil
	unlisted := slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Kind == Unlisted && !p.byHand })
	if unlisted && !slices.Equal(flags, []string{full}) {
		r.Mend = append(r.Mend, Remedy{"clean", "--unlisted"})
	}
	for _, f := range flags {
		r.Mend = append(r.Mend, Remedy{"run", f})
	}
}

// full is the flag of a run that replaces a whole dataset.
const full = "--full"

// MendsAll tells whether what mends the output is a run that replaces the whole dataset.
func (r *Report) MendsAll() bool { return slices.Equal(r.Mend, []Remedy{{"run", full}}) }

// ByHand tells how many problems no command mends.
func (r *Report) ByHand() (n int) {
	for _, p := range r.Problems {
		if p.byHand {
			n++
		}
	}
	return n
}

// Error is what a check of outputs found wrong. It is a data fault (exit code 65).
type Error struct {
	Outputs, Damaged int // outputs that were checked, and those with problems
	Problems         int
	ByHand           int // problems that no command mends
	Commands         int // that mend others
}

// Error says how many outputs are damaged.
func (e *Error) Error() string {
	outputs, problems := "1 output is", "1 problem"
	if e.Outputs > 1 {
		outputs = fmt.Sprintf("%d of %d outputs are", e.Damaged, e.Outputs)
	}
	if e.Problems > 1 {
		problems = fmt.Sprintf("%d problems", e.Problems)
	}
	return fmt.Sprintf("%s not as the manifest says: %s", outputs, problems)
}

// DataFault is true: data are damaged.
func (e *Error) DataFault() bool { return true }

// Of returns an *Error if one of the reports has problems, otherwise nil.
func Of(reports []*Report) error {
	e := &Error{Outputs: len(reports)}
	for _, r := range reports {
		if !r.Sound() {
			e.Damaged++
			e.Problems += len(r.Problems)
			e.ByHand, e.Commands = e.ByHand+r.ByHand(), e.Commands+len(r.Mend)
		}
	}
	if e.Damaged == 0 {
		return nil
	}
	return e
}
