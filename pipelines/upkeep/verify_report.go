package upkeep

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// remedy is what mends a problem. A later one also mends what an earlier one does.
type remedy int

const (
	byHand    remedy = iota // the problem's text says what to do
	byAnyRun                // whatever range the run has
	byReading               // a run that reads the part's window again
	byFullRun               // a run that replaces the whole dataset
)

// Problem is one thing that is not as the manifest says.
type Problem struct {
	// Kind is what it is about: the part (missing, length, sha256), its ids, its dead letters,
	// a result that is in more than one part (twice), the manifest or _SUCCESS (manifest), or
	// the number of results that the service counts (count).
	Kind  string     `json:"kind"`
	Part  string     `json:"part,omitempty"` // its path within the dataset, or the file's name
	Range load.Range `json:"range"`          // the part's window; null is no bound
	Text  string     `json:"problem"`
}

// Verified is what a check of one output found.
type Verified struct {
	Path     string    `json:"path"`
	Form     string    `json:"form"`
	Pipeline string    `json:"pipeline"`
	RunID    string    `json:"run_id"`
	Parts    int       `json:"parts"`
	Rows     int64     `json:"rows"`  // of the parts whose bytes are right
	Bytes    int64     `json:"bytes"` // of the parts, as the manifest says
	Problems []Problem `json:"problems"`
	// Notes say what could not be checked, and why.
	Notes []string `json:"notes"`
	// Covers is the range from the first window of the parts to the last one. Undated tells
	// that the parts also hold the results without a date, which no range includes.
	Covers  load.Range `json:"range"`
	Undated bool       `json:"undated"`
	Sound   bool       `json:"sound"` // nothing is wrong
	// Commands mend what is damaged, in the order in which to give them. There are none
	// where only the texts of the problems say what to do.
	Commands []string `json:"commands,omitempty"`

	Manifest *load.Manifest `json:"-"`
	single   bool           // it is a single file
	nothing  bool           // neither a manifest nor a part lies there
	mend     remedy         // of all problems
	damaged  []load.Part    // those to read again
	mu       sync.Mutex     // guards what is found while parts are checked side by side
}

// add adds a problem of a part of the manifest.
func (o *Verified) add(kind string, p load.Part, format string, values ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Problems = append(o.Problems, Problem{Kind: kind, Part: p.Path, Range: load.Range{From: p.From, To: p.To}, Text: fmt.Sprintf(format, values...)})
	o.damaged, o.mend = append(o.damaged, p), max(o.mend, byReading)
}

// about adds a problem of the whole output.
func (o *Verified) about(mend remedy, format string, values ...any) {
	o.Problems = append(o.Problems, Problem{Kind: "manifest", Text: fmt.Sprintf(format, values...)})
	o.mend = max(o.mend, mend)
}

// finish sorts the problems, and names the commands of a definition that mend them.
func (o *Verified) finish(def *definition.Definition) {
	slices.SortStableFunc(o.Problems, func(a, b Problem) int {
		return cmp.Or(a.Range.From.Compare(b.Range.From.Time), cmp.Compare(a.Part, b.Part))
	})
	o.Sound = len(o.Problems) == 0
	var runs []string // the flags of each
	switch {
	case o.mend == byHand:
	case o.mend == byAnyRun || o.single: // a file is written anew by every run
		runs = []string{""}
	case o.mend == byFullRun:
		runs = []string{full}
	default:
		runs = spareFiles(def, o.damaged, output.ReadAgain(o.damaged))
	}
	for _, flags := range runs {
		o.Commands = append(o.Commands, def.Command("run", flags))
	}
}

// full is the flag of a run that replaces a whole dataset.
const full = "--full"

// spareFiles changes the runs that mend a dataset where the definition also writes a file,
// which a run of a range would write anew with that range alone. A run of the definition's
// own range mends the dataset too, if all that is damaged lies in it.
func spareFiles(def *definition.Definition, damaged []load.Part, runs []string) []string {
	file := slices.ContainsFunc(def.Outputs, func(out definition.Output) bool { return !out.Dataset() && out.Path != definition.StdoutPath })
	outside := slices.ContainsFunc(damaged, func(p load.Part) bool {
		return p.From.Before(def.Extract.From) || !def.Extract.To.IsZero() && p.To.After(def.Extract.To)
	})
	if file && !outside && !slices.Contains(runs, full) {
		return []string{""}
	}
	return runs
}

// Damaged returns a *definition.Fault if one of the outputs has problems, otherwise nil.
func Damaged(outputs []*Verified) error {
	problems, commands := 0, 0
	for _, v := range outputs {
		problems += len(v.Problems)
		commands += len(v.Commands)
	}
	f := &definition.Fault{
		Code: codeData, Text: fmt.Sprintf("what was written is not as the manifests say; problems: %d, outputs checked: %d", problems, len(outputs)),
		Cure: "do what the problems and the notes say; then run the same command again",
	}
	switch {
	case problems == 0:
		return nil
	case commands > 0:
		f.Cure = "run what stands under the problems; then run the same command again"
	}
	return f
}
