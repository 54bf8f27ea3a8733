package upkeep

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// remedy is what mends a problem that Verify found. The runs stand in ascending order: byFullRun
// also mends what byReading mends, and byReading what byAnyRun mends.
type remedy int

const (
	byNoRun   remedy = iota // no run mends it; the text says what to do
	byAnyRun                // any run mends the problem, whatever its range
	byReading               // a run mends the problem that reads the part's window again
	byFullRun               // a run mends the problem that replaces the whole dataset
)

// Problem is one thing at an output that is not as its manifest says.
type Problem struct {
	// Kind is what the problem is about: a part (missing, length, sha256), the set of the part's
	// ids (ids), its dead letters (letters), results that are in other parts too (twice), a file
	// that no manifest lists (unlisted), the manifest or _SUCCESS (manifest), or the number of
	// results that the service counts (count).
	Kind  string     `json:"kind"`
	Part  string     `json:"part,omitempty"` // the part's path within the dataset, or the name of the file or of the list's table
	Range load.Range `json:"range"`          // the part's window of time; null is no bound
	Text  string     `json:"problem"`
}

// Verified is what a check of one output found.
type Verified struct {
	Path     string    `json:"path"`
	Form     string    `json:"form"`
	Pipeline string    `json:"pipeline"`
	RunID    string    `json:"run_id"`
	Parts    int       `json:"parts"`
	Rows     int64     `json:"rows"`               // rows of the parts whose bytes are right
	Rejected int64     `json:"rejected,omitempty"` // results that were rejected, as the manifest says
	Bytes    int64     `json:"bytes"`              // bytes of all parts, as the manifest says
	Problems []Problem `json:"problems"`
	// Notes say what of the output could not be checked, and why.
	Notes []string `json:"notes"`
	// Covers is the range from the first window of the parts to the last one. Undated tells
	// that the parts also hold the results without a date, which no range includes.
	Covers  load.Range `json:"range"`
	Undated bool       `json:"undated"`
	Sound   bool       `json:"sound"` // the output has no problems
	// Commands are the command lines that mend what is damaged, in order.
	Commands []string `json:"commands,omitempty"`

	Manifest *load.Manifest `json:"-"`
	single   bool           // the output is a single file, not a dataset
	nothing  bool           // neither a manifest nor a part lies at the output
	unlisted bool           // a part lies there that the manifest does not list
	mend     remedy         // what mends all problems together: the greatest remedy among them
	damaged  []load.Part    // parts with problems, whose windows have to be read again
	mu       sync.Mutex     // guards Rows, Problems, damaged and mend: parts are checked at once
}

// add adds a problem of the part p, which a run mends that reads the part's window again. It may be
// called side by side.
func (o *Verified) add(kind string, p load.Part, format string, values ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Problems = append(o.Problems, Problem{Kind: kind, Part: p.Path, Range: load.Range{From: p.From, To: p.To}, Text: fmt.Sprintf(format, values...)})
	o.damaged, o.mend = append(o.damaged, p), max(o.mend, byReading)
}

// about adds a problem of the whole output, of the kind "manifest", and the remedy that mends it.
func (o *Verified) about(mend remedy, format string, values ...any) {
	o.Problems = append(o.Problems, Problem{Kind: "manifest", Text: fmt.Sprintf(format, values...)})
	o.mend = max(o.mend, mend)
}

// finish sorts the problems, sets Sound, and sets Commands to the run of the definition that mends
// the problems.
func (o *Verified) finish(def *definition.Definition) {
	slices.SortStableFunc(o.Problems, func(a, b Problem) int {
		return cmp.Or(a.Range.From.Compare(b.Range.From.Time), cmp.Compare(a.Part, b.Part))
	})
	o.Sound = len(o.Problems) == 0
	if o.unlisted { // a run does not write beside it
		o.Commands = []string{def.Command("clean", "--unlisted")}
	}
	switch {
	case o.mend == byNoRun:
	case o.mend == byFullRun:
		o.Commands = append(o.Commands, def.Command("run", full))
	case o.mend == byAnyRun || o.single: // every run writes a single file anew
		o.Commands = append(o.Commands, def.Command("run"))
	default:
		o.Commands = append(o.Commands, def.Command("run", readAgain(def, o.damaged)))
	}
}

// full is the flag of the command run that replaces a whole dataset.
const full = "--full"

// readAgain returns the flags of the run that replaces damaged parts: it reads from the first of
// them to the last. A part without a bound of time needs --full, because no range includes it. If
// the definition also writes a single file, which a run of a narrower range would write anew with
// the results of that range alone, the run reads the definition's own range, "" in flags, if all
// damaged parts lie in that range.
func readAgain(def *definition.Definition, damaged []load.Part) string {
	from, to := damaged[0].From, damaged[0].To
	for _, p := range damaged {
		if p.Undated || p.From.IsZero() || p.To.IsZero() {
			return full
		}
		if p.From.Before(from.Time) {
			from = p.From
		}
		if p.To.After(to.Time) {
			to = p.To
		}
	}
	outside := from.Before(def.Extract.From) || !def.Extract.To.IsZero() && to.After(def.Extract.To)
	if def.HasFiles() && !outside {
		return ""
	}
	const layout = "2006-01-02T15:04:05" // without a blank
	return "--from " + from.Format(layout) + " --to " + to.Format(layout)
}

// Damaged returns a *definition.Fault of exit code 65 if one of the outputs has problems, else nil.
func Damaged(outputs []*Verified) error {
	problems, what, cure := 0, "the service counts other results than the outputs hold, as results came or went since the last run, or it miscounts", "do what the problems say"
	for _, v := range outputs {
		if problems += len(v.Problems); len(v.Commands) > 0 {
			cure = "run the commands that stand after \"to fix it\""
		}
		if slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Kind != "count" }) {
			what = "the outputs are not in order"
		}
	}
	if problems == 0 {
		return nil
	}
	return &definition.Fault{
		Code: 65, Text: fmt.Sprintf("%s: %s", what, plain.Plural(problems, "problem")),
		Cure: cure + "; then run the same command again",
	}
}
