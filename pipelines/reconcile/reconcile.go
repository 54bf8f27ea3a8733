package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas/plain"
)

// PointVerified is the point at which reading.Form.At is called once what was
// read agrees with the counts.
const PointVerified = "verified"

// Parts gives access to the datasets that the run writes, as earlier runs left them.
type Parts interface {
	// Datasets returns the datasets as earlier runs left them.
	Datasets() []Dataset
	// Holding returns the parts that hold one of the ids and that r does not replace. A part
	// whose ids are not known is among them.
	Holding(ctx context.Context, ids idset.Set, r Replaced) ([]Held, error)
	// IDs returns the ids of all results in the parts of each dataset that choose returns. The
	// error wraps idset.ErrDamaged if the ids of a part are not known.
	IDs(ctx context.Context, choose func(Dataset) []load.Part) (idset.Set, error)
}

// Dataset is a dataset as earlier runs left it.
type Dataset struct {
	Path     string         // as people know the output
	Manifest *load.Manifest // nil if no run committed it
	Damaged  []load.Part    // parts whose objects are missing or have another size
	Child    bool           // the dataset holds elements of a list, and so not each result once
}

// manifestsOf returns the manifests of all datasets, nil for one that no run committed.
func manifestsOf(p Parts) (manifests []*load.Manifest) {
	for _, d := range p.Datasets() {
		manifests = append(manifests, d.Manifest)
	}
	return manifests
}

// wholeOf returns the manifests of the datasets that hold each result once.
func wholeOf(p Parts) (manifests []*load.Manifest) {
	for _, d := range p.Datasets() {
		if d.Manifest != nil && !d.Child {
			manifests = append(manifests, d.Manifest)
		}
	}
	return manifests
}

// Held is a part that holds some ids.
type Held struct {
	load.Part
	IDs idset.Set // those of the ids that the part holds; empty if the part's ids are not known
}

// Start is what a Reconciler is told once the run is planned.
type Start struct {
	Interval reading.Interval
	Plan     *extract.Plan
	Parts    Parts
	Full     bool // the run replaces everything
	Files    bool // an output holds only what was asked for, not whole parts
	Trusted  bool // counts must confirm what an earlier run read
	// Lookback says why an incremental run reads its lookback, whatever the service tells
	// of changes; "" if the run relies on the changes.
	Lookback string
	// Changes is what the service named as changed before the run read anything;
	// nil if the service was not asked.
	Changes *Changes
}

// Reconciler makes what a run read agree with itself, with older parts and with counts.
type Reconciler struct {
	Reader *reading.Reader
	Start
	// Windows are the windows of the plan, in order of time. Reconcile adds
	// windows and divides some.
	Windows []*reading.Window

	Verified *load.Verified // for Interval.Read, or for all of the datasets where SumsUp; nil before Reconcile
	Reread   int            // windows that were read again
	Older    int            // windows of older parts that were read

	lookedAhead bool  // whether results that are dated later than now were looked for
	planned     int64 // requests until anything was read or compared again, see again; 0 before
	counted     counted

	older    []*reading.Older // spans outside the range that are read again
	compared idset.Set        // ids that were already looked for in older parts
	datedNow bool             // a result that had no date has one now

	expected  idset.Set // ids of results that a window must hold in the end
	explained idset.Set // ids that were asked for, and are deleted or outside the range
	outside   idset.Set // of explained, the ids that the service did not find in the range
	later     []int64   // ids of changed results that lie after the range
	rechecked bool      // checkChanges was called; it asks the feed of changes at most once more
	weak      bool      // the run would not notice every lost result by ids and changes alone

	all *proof // see proofOfAll; nil before it is needed
}

// New returns a Reconciler of what a reader is about to read.
func New(r *reading.Reader, start Start) *Reconciler {
	c := &Reconciler{Reader: r, Start: start, Windows: reading.Windows(start.Plan), counted: counted{own: extract.Unknown, read: extract.Unknown}}
	for _, w := range c.Windows {
		w.Summed = c.SumsUp()
	}
	return c
}

// Reconcile reads windows again until what was read agrees with itself, with
// older parts, with the service's counts, and with what changed meanwhile.
func (c *Reconciler) Reconcile(ctx context.Context) error {
	if err := c.readStale(ctx); err != nil {
		return err
	}
	for {
		if err := c.rereadDuplicates(ctx); err != nil {
			return err
		}
		if err := c.rereadStale(ctx); err != nil {
			return err
		}
		if err := c.verify(ctx); err != nil {
			return err
		}
		if !c.uncompared().IsEmpty() {
			continue
		}
		again, err := c.rereadMissing(ctx)
		if err != nil {
			return err
		}
		if !again {
			return c.nameMethod()
		}
		if err := c.again(); err != nil {
			return err
		}
	}
}

// nameMethod sets in Verified how the run made sure that no result is lost, and what it
// did not prove. The error has exit code 65 if the definition demands the proof.
func (c *Reconciler) nameMethod() error {
	v, cure := c.Verified, "to run without proof, leave out --strict and `verify: required`"
	switch {
	case c.Reader.Countless != "":
		v.Method, v.Unproven = load.MethodRead, c.Reader.Countless
	case !c.Verifies():
		if !c.weak {
			v.Method = load.MethodChanges
		} else if reading.MayMiss(c.Plan) {
			among := ""
			if c.Reader.Filtered() {
				among = " among the results of a search or a view"
				cure = "to get proof, leave out the search or the view; " + cure
			}
			v.Unproven = "the service does not list what changed" + among + ", so results that changed during the run may be missing"
		}
		if !c.Reader.Def.Extract.Verify {
			v.Unproven = "the definition says verify: false"
		}
	case c.weak:
		v.Method = c.Reader.CountMethod()
	default:
		v.Method = load.MethodChanges
	}
	if v.Unproven != "" && c.Reader.Def.Extract.Proof {
		return &definition.Fault{
			Code: 65, Text: "not verified, because " + v.Unproven + "; nothing was written, because --strict or verify: required asks for proof",
			Cure: cure + "; `" + c.Reader.Def.Command("doctor") + "` shows what the service can prove",
		}
	}
	return nil
}

// Verifies tells whether what is read is compared with counts. That is so if
// the definition asks for it or Trusted is set, unless results are filtered or the
// service tells no counts.
func (c *Reconciler) Verifies() bool {
	return !c.Reader.Filtered() && c.Reader.Countless == "" && (c.Reader.Def.Extract.Verify || c.Trusted)
}

// Replaced says which parts of a dataset a run replaces: those of the range Read, of the spans
// Older, those without a date if Undated is set, and all parts if Full is set.
type Replaced struct {
	Read    extract.Window
	Older   []extract.Window
	Undated bool
	Full    bool
}

// Replaced returns which parts the run replaces so far.
func (c *Reconciler) Replaced() Replaced {
	r := Replaced{Read: c.Interval.Read, Undated: c.wantsUndated(), Full: c.Full}
	for _, o := range c.older {
		r.Older = append(r.Older, o.Window)
	}
	return r
}

// Divide divides the parts of a manifest, which may be nil. replaced are those that
// the run replaces, and kept are those that stay.
func (r Replaced) Divide(m *load.Manifest) (replaced, kept []load.Part) {
	if m == nil {
		return nil, nil
	}
	if r.Full {
		return m.Parts, nil
	}
	replaced, rest, _ := load.Intersecting(m.Parts, load.Span(r.Read.From, r.Read.To))
	for _, w := range r.Older {
		var again []load.Part
		again, rest, _ = load.Intersecting(rest, load.Span(w.From, w.To))
		replaced = append(replaced, again...)
	}
	for _, p := range rest {
		if p.Undated && r.Undated {
			replaced = append(replaced, p)
		} else {
			kept = append(kept, p)
		}
	}
	return replaced, kept
}

// VerifyError reports that what was read does not agree with the service's count, which
// did not change while it was read again.
type VerifyError struct {
	Counted, Extracted int64
	Windows            []extract.Window // the windows that do not agree
	Undated            bool             // it is the results without a date that do not agree
	Untold             bool             // no count of the service has agreed in this run
}

// Error gives the two numbers of results, and names the windows that do not agree.
func (e *VerifyError) Error() string {
	windows := make([]string, len(e.Windows))
	for i, w := range e.Windows {
		windows[i] = w.Dates()
	}
	what, where := "results", " in the windows "+plain.Few(windows, 5)
	if e.Undated {
		what, where = "results without a date", ""
	} else if slices.Contains(windows, "all dates") { // the one window of a range without bounds
		where = ""
	}
	return fmt.Sprintf("the service counts %s %s%s but sends %s, even when asked again; nothing was written", plain.Thousands(e.Counted), what, where, plain.Thousands(e.Extracted))
}

// ExitCode returns 65, an error of the data: another run would meet the same counts.
func (e *VerifyError) ExitCode() int { return 65 }

// Hint says what to show to those who run the service, because only they can mend its counts.
func (e *VerifyError) Hint() string {
	return "try again later; or go on without this check, though results may be missing, with --no-verify (export) or verify: false in the definition; if it stays so, " + extract.ShowDoctor
}

// leastRereads is how many requests a run may always spend on reading again.
const leastRereads = 200

// again is called before anything is read or compared once more. Reading again may cost as
// many requests as the run had sent when again was first called, plus those for older parts
// that are read for the first time. Counts and lists of changes, which find what to read, may
// cost as many besides. A form that changes faster ends the run with exit code 75.
func (c *Reconciler) again() error {
	c.Reader.ForgetOverlaps()
	if c.planned == 0 {
		c.planned = c.sent()
	}
	spent := c.sent() - c.planned
	if spent <= 2*max(leastRereads, c.planned) {
		return nil
	}
	w := slices.MaxFunc(c.Windows, func(a, b *reading.Window) int { return cmp.Compare(a.Tries, b.Tries) })
	return &definition.Fault{
		Code: 75,
		Text: fmt.Sprintf("the form changes faster than formetl can read it: %d requests were spent on reading changed windows again, most of them on the window %s, which was read %d times; nothing was written",
			spent, w.Name(), w.Tries),
		Cure: "run the same command again at a quieter time; or leave out the newest results, by an earlier `to` or a longer `settle`; or make `window` smaller",
	}
}

// sent returns how many requests the form has cost so far.
func (c *Reconciler) sent() int64 {
	r := c.Reader.Client.Requests()
	return r.Results + r.Count + r.Retries
}
