package upkeep

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// remedy is what mends a problem that Verify found. The runs stand in ascending order: byFullRun
// also mends what byReading mends, and byReading what byAnyRun mends.
type remedy int

const (
	byHand    remedy = iota // no run mends the problem; its text says what to do
	byAnyRun                // any run mends the problem, whatever its range
	byReading               // a run mends the problem that reads the part's window again
	byFullRun               // a run mends the problem that replaces the whole dataset
)

// Problem is one thing at an output that is not as its manifest says.
type Problem struct {
	// Kind is what the problem is about: a part (missing, length, sha256), the set of the part's
	// ids (ids), its dead letters (letters), results that are in other parts too (twice), the
	// manifest or _SUCCESS (manifest), or the number of results that the service counts (count).
	Kind  string     `json:"kind"`
	Part  string     `json:"part,omitempty"` // the part's path within the dataset, or the file's name
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
	Rows     int64     `json:"rows"`  // rows of the parts whose bytes are right
	Bytes    int64     `json:"bytes"` // bytes of all parts, as the manifest says
	Problems []Problem `json:"problems"`
	// Notes say what of the output could not be checked, and why.
	Notes []string `json:"notes"`
	// Covers is the range from the first window of the parts to the last one. Undated tells
	// that the parts also hold the results without a date, which no range includes.
	Covers  load.Range `json:"range"`
	Undated bool       `json:"undated"`
	Sound   bool       `json:"sound"` // the output has no problems
	// Commands are the command lines that mend what is damaged, in the order in which to give
	// them. There are none if only the texts of the problems say what to do.
	Commands []string `json:"commands,omitempty"`

	Manifest *load.Manifest `json:"-"`
	single   bool           // the output is a single file, not a dataset
	nothing  bool           // neither a manifest nor a part lies at the output
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

// finish sorts the problems, sets Sound, and sets Commands to the runs of the definition that mend
// the problems.
func (o *Verified) finish(def *definition.Definition) {
	slices.SortStableFunc(o.Problems, func(a, b Problem) int {
		return cmp.Or(a.Range.From.Compare(b.Range.From.Time), cmp.Compare(a.Part, b.Part))
	})
	o.Sound = len(o.Problems) == 0
	var runs []string // flags of each run, "" for none
	switch {
	case o.mend == byHand:
	case o.mend == byAnyRun || o.single: // every run writes a single file anew
		runs = []string{""}
	case o.mend == byFullRun:
		runs = []string{full}
	default:
		runs = spareFiles(def, o.damaged, readAgain(o.damaged))
	}
	for _, flags := range runs {
		o.Commands = append(o.Commands, def.Command("run", flags))
	}
}

// full is the flag of the command run that replaces a whole dataset.
const full = "--full"

// spareFiles returns the flags of the runs that mend the damaged parts of a dataset: runs, except
// if the definition also writes a single file, which a run of a narrower range would write anew
// with the results of that range alone. Then it is one run of the definition's own range, if all
// damaged parts lie in that range.
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

// readAgain returns, for each run that is needed to replace parts, the command-line flags of its
// range. A part without a bound of time needs --full, because no range includes it.
func readAgain(parts []load.Part) []string {
	var spans []load.Range
	for _, p := range parts {
		if p.Undated || p.From.IsZero() || p.To.IsZero() {
			return []string{full}
		}
		spans = append(spans, load.Range{From: p.From, To: p.To})
	}
	slices.SortFunc(spans, func(a, b load.Range) int { return a.From.Compare(b.From.Time) })
	var joined []load.Range
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && !s.From.After(joined[last].To.Time) {
			if joined[last].To.Before(s.To.Time) {
				joined[last].To = s.To
			}
			continue
		}
		joined = append(joined, s)
	}
	flags := make([]string, len(joined))
	for i, s := range joined {
		flags[i] = fmt.Sprintf("--from %s --to %s", flagTime(s.From), flagTime(s.To))
	}
	return flags
}

// flagTime writes a wall-clock time in the form of the flags --from and --to, without a blank.
func flagTime(t load.WallTime) string {
	if t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04:05")
}

// Damaged returns a *definition.Fault of exit code 65 if one of the outputs has problems, else nil.
func Damaged(outputs []*Verified) error {
	problems, commands := 0, 0
	for _, v := range outputs {
		problems += len(v.Problems)
		commands += len(v.Commands)
	}
	f := &definition.Fault{
		Code: 65, Text: fmt.Sprintf("the outputs differ from their manifests: %s, %s checked", plain.Plural(problems, "problem"), plain.Plural(len(outputs), "output")),
		Cure: "do what the problems and notes say; then run the same command again",
	}
	switch {
	case problems == 0:
		return nil
	case commands > 0:
		f.Cure = "run the commands that are under the problems; then run the same command again"
	}
	return f
}
