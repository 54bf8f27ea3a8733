package reading

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// Reader reads windows of a form into a checkpoint. Its methods may be called
// while windows are read.
type Reader struct {
	Form
	Checkpoint *checkpoint.Checkpoint
	Header     checkpoint.Header // header of the checkpoint, without the columns
	Schema     *schemas.Schema   // the columns that the rows begin with; windows may add more
	Headings   []page.Heading    // labels known when the schema was settled
	// Keeps tells whether another run can take over what this run read before an error.
	Keeps func(error) bool
	// Watch is called with the number of results read so far and the number
	// expected, which may be extract.Unknown.
	Watch func(read, expected int64)

	overlaps sync.Map // what Overlap found, by the beginning of a window

	told     atomic.Bool  // set once a count agreed with what was read, see CountAgreed
	reads    atomic.Int64 // windows read so far, from which Window.Number is taken
	read     atomic.Int64 // results read so far
	expected atomic.Int64 // results expected, or extract.Unknown
	planned  atomic.Int64 // windows of the plan
	done     atomic.Int64 // windows of the plan that were read or are known to be empty

	mu      sync.Mutex // guards the fields below and the readings of windows
	rejects rejects
	added   map[schemas.Source]bool // columns that windows have added to the schema
	labels  map[string]string       // current labels of the headings, by id
}

// Begin writes the header of the checkpoint with the columns that are known, so that the next run
// can take over what is read from now on.
func (r *Reader) Begin(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h := r.Header
	if r.Schema != nil {
		h.Headings = r.Headings
		if r.Def.Schema == nil {
			h.Inferred = checkpoint.EncodeColumns(r.Schema.Columns)
		}
	}
	return r.Checkpoint.Begin(ctx, h)
}

// Read reads windows side by side, and several goroutines read one window if there
// are fewer windows than slots. The slots limit how many requests for results all
// forms of the run have under way.
func (r *Reader) Read(ctx context.Context, windows []*Window) error {
	return newShared(r, windows).run(ctx)
}

// run starts a goroutine for each slot, and returns once they have read all windows or one
// has failed.
func (s *shared) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, s.wake)()
	for range cap(s.r.Slots) {
		group.Go(func() error { return s.work(ctx) })
	}
	return group.Wait()
}

// CountAgreed notes that as many results were read as the service counted before and after,
// which shows that its counts are right. An agreement on 0 results shows nothing.
func (r *Reader) CountAgreed(results int64) {
	if results > 0 {
		r.told.Store(true)
	}
}

// CountsAgreed tells whether a count of the service has agreed with what was read.
func (r *Reader) CountsAgreed() bool { return r.told.Load() }

// Reads returns how many windows were read so far. A window read twice counts twice.
func (r *Reader) Reads() int64 { return r.reads.Load() }

// Expect adds n to the number of results that are expected.
func (r *Reader) Expect(n int64) {
	if n == extract.Unknown {
		r.expected.Store(extract.Unknown)
	} else if r.Expected() != extract.Unknown {
		r.expected.Add(n)
	}
}

// Expected returns how many results are expected, or extract.Unknown.
func (r *Reader) Expected() int64 { return r.expected.Load() }

// Progress adds to the number of results read, and calls Watch.
func (r *Reader) Progress(results int64) { r.Watch(r.read.Add(results), r.Expected()) }

// Total returns how many results were read so far.
func (r *Reader) Total() int64 { return r.read.Load() }

// Planned notes the windows of a plan.
func (r *Reader) Planned(windows []*Window) {
	r.planned.Store(int64(len(windows)))
	for _, w := range windows {
		if w.Done {
			r.done.Add(1)
		}
	}
}

// Windows returns how many windows the plan has, and how many of them are done.
func (r *Reader) Windows() (planned, done int64) { return r.planned.Load(), r.done.Load() }

// numbered gives a window that was read the next Number. A window that is read again counts
// only once among the done windows.
func (r *Reader) numbered(w *Window) {
	if w.Number == 0 && w.OfRange() {
		r.done.Add(1)
	}
	w.Number = r.reads.Add(1)
}

// Labels returns the current labels of the headings, by id. It returns nil if
// the service has sent none.
func (r *Reader) Labels() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.labels
}

// learn keeps the first headings that the service sends.
func (r *Reader) learn(headings []page.Heading) {
	if len(headings) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.labels != nil {
		return
	}
	labels := make(map[string]string, len(headings))
	for _, h := range headings {
		labels[h.ID] = h.Label
	}
	r.labels = labels
}

// checkColumns returns an error if the schema and the columns added by windows exceed
// max_columns. The caller holds r.mu while windows are read.
func (r *Reader) checkColumns() error {
	if n, most := len(r.Schema.Columns)+len(r.added), r.Schema.MostColumns(); n > most {
		return &transform.ColumnsError{Columns: n, Max: most}
	}
	return nil
}

// rejects counts the results that were rejected, and the reasons.
type rejects struct {
	results map[int64]int             // ids of rejected results, and how many pieces reject each
	faults  map[transform.Fault]int64 // number of rejects by reason
}

// count adds the rejects of a piece n times, or subtracts them if n is -1.
func (r *rejects) count(p checkpoint.Piece, n int) {
	if r.results == nil {
		r.results, r.faults = map[int64]int{}, map[transform.Fault]int64{}
	}
	for _, reject := range p.Rejects {
		if r.results[reject.ResultID] += n; r.results[reject.ResultID] <= 0 {
			delete(r.results, reject.ResultID)
		}
	}
	for fault, k := range p.Stats.Rejects {
		r.faults[fault] += k * int64(n)
	}
}

// checkRejects returns an error as soon as more results are rejected than the
// schema allows. A result that moved between two readings may be rejected in
// both windows, but counts once.
func (r *Reader) checkRejects() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rejects.results) <= r.Schema.MaxRejects {
		return nil
	}
	var n int64
	for _, pieces := range r.rejects.results {
		n += int64(pieces)
	}
	return &RejectsError{Rejected: n, Max: r.Schema.MaxRejects, Faults: maps.Clone(r.rejects.faults)}
}

// RejectsError reports that a run rejected more results than the schema allows.
type RejectsError struct {
	Rejected int64
	Max      int
	Faults   map[transform.Fault]int64
	Rejects  []transform.Reject // rejected results, as far as they are known
}

// Error says how many results were rejected, the most frequent reasons, and the first rejected
// results. It shows no value, because a value may be personal data.
func (e *RejectsError) Error() string {
	const shownFaults, shownRejects = 5, 3
	counts := Faults(e.Faults)
	faults, first := make([]string, min(shownFaults, len(counts))), make([]string, min(shownRejects, len(e.Rejects)))
	for i, c := range counts[:len(faults)] {
		faults[i] = fmt.Sprintf("%d in column %s: %s", c.Count, c.Column, c.Reason)
	}
	for i, r := range e.Rejects[:len(first)] {
		first[i] = fmt.Sprintf("result %d (column %s)", r.ResultID, r.Column)
	}
	such := ""
	if len(first) > 0 {
		such = "; for example " + strings.Join(first, ", ")
	}
	return fmt.Sprintf("too many results were rejected: at least %d, and max_rejects allows %d (%s)%s; nothing was written",
		e.Rejected, e.Max, strings.Join(faults, "; "), such)
}

// Hint says that only a change of the schema helps.
func (e *RejectsError) Hint() string {
	return "in the schema, correct what these columns allow (type, which is list<string> for several values, format, true_values, decimal_separator, nullable); or write on_error: set_null, which leaves such values empty; or raise max_rejects, which leaves such results out of the outputs"
}

// ExitCode returns 65, an error of the data: another run would meet the same values.
func (e *RejectsError) ExitCode() int { return 65 }

// FaultCount is how many values of a column were rejected or nulled for one reason.
type FaultCount struct {
	Column string `json:"column"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Faults lists counts by column and reason, the most frequent first.
func Faults(m map[transform.Fault]int64) []FaultCount {
	list := make([]FaultCount, 0, len(m))
	for k, n := range m {
		if n > 0 {
			list = append(list, FaultCount{Column: k.Column, Reason: k.Reason, Count: n})
		}
	}
	slices.SortFunc(list, func(a, b FaultCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}
