package pipelines

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// frozen is what a run decided before it read its first window, as its
// journal keeps it: whoever goes on with the run decides nothing anew.
type frozen struct {
	Asked   load.Range    `json:"asked"` // as it was asked for: without an end where the clock gave it
	Own     load.Range    `json:"own"`   // the same with its end
	Range   load.Range    `json:"range"` // own, widened to whole parts
	Settled load.WallTime `json:"settled"`
	Full    bool          `json:"full,omitempty"`
	// Dateless tells that one window without dates was to hold everything.
	Dateless bool `json:"dateless,omitempty"`
	// Trusted tells that windows were read in the trust that the counts will
	// vouch for them: whoever goes on has to count.
	Trusted bool `json:"trusted,omitempty"`
	// Covered is what the runs that this one follows on had committed.
	Covered  *load.Range    `json:"covered,omitempty"`
	Windows  []frozenWindow `json:"windows"`
	Groups   []int64        `json:"groups"`
	Total    int64          `json:"total"` // extract.Unknown where nothing was counted
	Inferred []load.Column  `json:"inferred,omitempty"`
	// Headings are those that the schema was inferred with, Labels all that
	// were known when the journal was opened.
	Headings []page.Heading    `json:"headings,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// frozenWindow is a window of the plan.
type frozenWindow struct {
	load.Range
	Count int64 `json:"count"`
	Group int   `json:"group"`
}

// freeze gives what the journals of a run begin with.
func (f *formRun) freeze() (json.RawMessage, error) {
	z := frozen{
		Asked: wallRange(f.asked), Own: wallRange(f.own), Range: wallRange(f.rng), Settled: load.Wall(f.settled),
		Full: f.full, Dateless: f.dateless, Trusted: f.verifies(), Groups: f.plan.Groups, Total: f.plan.Total,
	}
	if f.covered != nil {
		covered := wallRange(*f.covered)
		z.Covered = &covered
	}
	for _, p := range f.plan.Windows {
		z.Windows = append(z.Windows, frozenWindow{Range: wallRange(p.Window), Count: p.Count, Group: p.Group})
	}
	if f.def.Schema == nil && f.schema != nil {
		z.Inferred, z.Headings = manifestColumns(f.schema.Columns, schemas.HMACKey{}), f.headings
	}
	f.mu.Lock()
	z.Labels = f.labels
	f.mu.Unlock()
	return json.Marshal(z)
}

// errLeftDatesOut is why nobody goes on with a run whose one window had no
// dates: it holds what there was at that time and no later one.
var errLeftDatesOut = errors.New("the service ignored dates, so that all results are read again")

// check tells whether a run can go on with what was frozen.
func (z *frozen) check() error {
	if _, err := z.plan(); err != nil {
		return err
	}
	_, err := inferredColumns(z.Inferred)
	return err
}

// plan gives the frozen plan, and fails where it is none.
func (z *frozen) plan() (*extract.Plan, error) {
	plan := &extract.Plan{Groups: z.Groups, Total: z.Total}
	for i, w := range z.Windows {
		if w.Group < 0 || w.Group >= len(z.Groups) || w.To.IsZero() || i > 0 && w.From != z.Windows[i-1].To {
			return nil, fmt.Errorf("its window %d does not fit the others", i+1)
		}
		plan.Windows = append(plan.Windows, extract.Planned{Window: spanOf(w.Range), Count: w.Count, Group: w.Group})
	}
	if len(z.Windows) == 0 || z.Windows[0].From != z.Range.From || z.Windows[len(z.Windows)-1].To != z.Range.To {
		return nil, errors.New("its windows are not those of its range")
	}
	return plan, nil
}

func spanOf(r load.Range) extract.Window { return extract.Window{From: r.From.Time, To: r.To.Time} }

// windowRecord is what a journal keeps of a window that was read.
type windowRecord struct {
	load.Range
	Attempt  string             `json:"attempt"` // id of the process's own run, and
	Reading  int                `json:"reading"` // number of the reading in it: both are equal where outputs hold the same
	IDs      []byte             `json:"ids"`     // roaring bitmap of rows and rejects
	Stats    statsRecord        `json:"stats"`
	Rejects  []transform.Reject `json:"rejects,omitempty"`
	Replaced int64              `json:"replaced,omitempty"` // forbidden characters
}

// partRecord is the body of a journal's record.
type partRecord struct {
	Windows []windowRecord `json:"windows"`
	Columns string         `json:"columns"` // digest of the columns that the part has
	// Results is how many results each object of a child output is of.
	Results []int64 `json:"results,omitempty"`
	Undated bool    `json:"undated,omitempty"`
}

// statsRecord is transform.Stats with keys that JSON knows.
type statsRecord struct {
	Rows     int64            `json:"rows"`
	Rejected int64            `json:"rejected,omitempty"`
	Rejects  []FaultCount     `json:"rejects,omitempty"`
	Nulled   []FaultCount     `json:"nulled,omitempty"`
	Joined   map[string]int64 `json:"joined,omitempty"`
	Shifted  map[string]int64 `json:"shifted,omitempty"`
	Ignored  map[string]int64 `json:"ignored,omitempty"` // by source
	Added    []load.Column    `json:"added,omitempty"`
	// Seen is by source.
	Seen map[string]seenRecord `json:"seen,omitempty"`
}

// seenRecord is transform.Seen with keys that JSON knows.
type seenRecord struct {
	Filled   int64            `json:"filled,omitempty"`
	ItemType string           `json:"item_type,omitempty"`
	Index    int              `json:"index,omitempty"`
	Choices  map[string]int64 `json:"choices,omitempty"`
	Many     bool             `json:"many,omitempty"`
}

func recordStats(s transform.Stats) statsRecord {
	r := statsRecord{
		Rows: s.Rows, Rejected: s.Rejected, Rejects: faults(s.Rejects), Nulled: faults(s.Nulled),
		Joined: s.Joined, Shifted: s.Shifted,
	}
	if len(s.Added) > 0 {
		r.Added = manifestColumns(s.Added, schemas.HMACKey{}) // which have no rules
	}
	if len(s.Seen) > 0 {
		r.Seen = make(map[string]seenRecord, len(s.Seen))
		for from, seen := range s.Seen {
			r.Seen[from.String()] = seenRecord(seen)
		}
	}
	if len(s.Ignored) > 0 {
		r.Ignored = make(map[string]int64, len(s.Ignored))
		for from, n := range s.Ignored {
			r.Ignored[from.String()] = n
		}
	}
	return r
}

func (r statsRecord) stats() (transform.Stats, error) {
	s := transform.Stats{
		Rows: r.Rows, Rejected: r.Rejected, Rejects: faultMap(r.Rejects), Nulled: faultMap(r.Nulled),
		Joined: r.Joined, Shifted: r.Shifted,
	}
	var err error
	if s.Added, err = inferredColumns(r.Added); err != nil {
		return s, err
	}
	if len(r.Ignored) > 0 {
		s.Ignored = make(map[schemas.Source]int64, len(r.Ignored))
	}
	for text, n := range r.Ignored {
		from, err := schemas.ParseSource(text)
		if err != nil {
			return s, err
		}
		s.Ignored[from] = n
	}
	if len(r.Seen) > 0 {
		s.Seen = make(map[schemas.Source]transform.Seen, len(r.Seen))
	}
	for text, seen := range r.Seen {
		from, err := schemas.ParseSource(text)
		if err != nil {
			return s, err
		}
		s.Seen[from] = transform.Seen(seen)
	}
	return s, nil
}

func faultMap(list []FaultCount) map[transform.Fault]int64 {
	if len(list) == 0 {
		return nil
	}
	m := make(map[transform.Fault]int64, len(list))
	for _, c := range list {
		m[transform.Fault{Column: c.Column, Reason: c.Reason}] = c.Count
	}
	return m
}

// recordWindow describes what was read of a window.
func recordWindow(w *windowRun) (windowRecord, error) {
	ids, err := w.ids.ToBytes()
	if err != nil {
		return windowRecord{}, err
	}
	return windowRecord{
		Range: wallRange(w.planned.Window), Attempt: w.attempt, Reading: w.readAt, IDs: ids,
		Stats: recordStats(statsOf([]*windowRun{w})), Rejects: w.rejects, Replaced: w.replaced,
	}, nil
}

// reading is what was read of a window, taken over from a journal.
type reading struct {
	attempt  string
	number   int
	ids      *roaring64.Bitmap
	stats    transform.Stats
	seen     packedSeen // what stats have no more of it, see pack
	rejects  []transform.Reject
	replaced int64
}

// same tells whether two are one reading.
func (r reading) same(other reading) bool {
	return r.attempt == other.attempt && r.number == other.number
}

// pack moves what was seen of the rows into a dictionary: there are as many
// readings at once as windows.
func (r *reading) pack(d *seenDictionary) {
	r.seen, r.stats.Seen = d.pack(r.stats.Seen), nil
}

// reading reads a window's record and checks that it agrees with itself.
func (r windowRecord) reading() (reading, error) {
	out := reading{attempt: r.Attempt, number: r.Reading, rejects: r.Rejects, replaced: r.Replaced}
	var err error
	if out.ids, err = readIDs(r.IDs); err != nil {
		return out, err
	}
	if out.stats, err = r.Stats.stats(); err != nil {
		return out, err
	}
	n := out.stats.Rows + out.stats.Rejected
	if r.Reading <= 0 || n < 0 || uint64(n) != out.ids.GetCardinality() || int64(len(r.Rejects)) != out.stats.Rejected {
		return out, fmt.Errorf("the record of the window %s does not agree with itself", spanOf(r.Range))
	}
	return out, nil
}

var errIDs = errors.New("the set of ids is damaged")

// readIDs reads a set of ids. The library trusts the lengths that stand in its
// format: it makes room for what the first of them says, and panics at some
// that cannot be.
func readIDs(data []byte) (ids *roaring64.Bitmap, err error) {
	if len(data) < 8 || binary.LittleEndian.Uint64(data) > uint64(len(data)/8) {
		return nil, errIDs
	}
	defer func() {
		if recover() != nil {
			err = errIDs
		}
	}()
	ids = roaring64.New()
	return ids, ids.UnmarshalBinary(data)
}

// fingerprint is equal for definitions that make equal parts of equal
// results: a journal of another one is of no use. Settings of requests, the
// check by counts, the range and the windows are not in it.
func (o *datasetOutput) fingerprint() (string, error) {
	def, e := o.f.def, o.f.def.Extract
	data, err := json.Marshal(struct {
		Version                                 int
		Pipeline, Form                          string
		BaseURL, Account, Timezone              string
		View, Search, Names                     string
		CustomLabels                            string
		Schema                                  *schemas.Schema
		Format, Compression, Partition, Profile string
		Explode                                 string `json:",omitempty"`
	}{
		journalVersion, def.Name, o.f.form,
		def.Source.BaseURL, def.Source.Account, def.Source.Zone.String(),
		e.View, e.Search.String(), o.f.naming(), e.CustomLabels, def.Schema,
		o.format.Name, o.out.Compression, string(o.out.Partition), o.out.Profile,
		o.out.Explode.String(),
	})
	if err != nil {
		return "", err
	}
	return digest(data), nil
}

// journalVersion is part of the fingerprint: a journal of another version's
// program is not continued.
const journalVersion = 3

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// columnsDigest is equal for equal columns.
func columnsDigest(columns []schemas.Column, key schemas.HMACKey) (string, error) {
	data, err := json.Marshal(manifestColumns(columns, key))
	return digest(data), err
}

// beyond is what a range holds besides another: nothing, or one or two ranges.
// A zero bound is none.
func beyond(w, done extract.Window) []extract.Window {
	if !w.To.After(done.From) && !done.From.IsZero() || !w.From.IsZero() && !w.From.Before(done.To) {
		return []extract.Window{w} // they do not meet
	}
	var rest []extract.Window
	if !done.From.IsZero() && (w.From.IsZero() || w.From.Before(done.From)) {
		rest = append(rest, extract.Window{From: w.From, To: done.From})
	}
	if w.To.After(done.To) {
		rest = append(rest, extract.Window{From: done.To, To: w.To})
	}
	return rest
}

// joined is the span of two that meet or follow each other.
func joined(a, b extract.Window) extract.Window {
	if b.From.IsZero() || !a.From.IsZero() && b.From.Before(a.From) {
		a.From = b.From
	}
	if b.To.After(a.To) {
		a.To = b.To
	}
	return a
}

// age shows how long ago something was, for people.
func age(now, then time.Time) time.Duration { return now.Sub(then).Round(time.Second) }
