package formservice

import (
	"cmp"
	"fmt"
	"time"
)

// MaxResults is the most results that Generate makes.
const MaxResults = 10_000_000

const (
	blockSize = 64 // results of which one is late, one unfinished and one without a date
	firstID   = 100_001
	idStride  = 3     // ids of neighbours differ by 1 to 5
	soon      = 3600  // seconds: most results are finished this long after their start, at most
	latest    = 864e3 // seconds: ten days, the most that a late one takes
	daySize   = 86400
)

// GenerateOptions describe a generated form. Equal options give equal forms.
type GenerateOptions struct {
	Directory string // "": form1
	Name      string // "": "Form " and the directory
	Seed      uint64
	Results   int       // at most MaxResults
	From, To  time.Time // wall clock; every date lies in [From, To). Zero: the year 2025; To zero: a year after From
	Items     int       // 0: 14; at most 1000

	Even         bool // no quiet days, no bursts, no weekends
	NoUnfinished bool // every result is finished
	NoUndated    bool // no result without any date
	NoLate       bool // every result is finished within the hour, none after days
	NoHostile    bool // no values that try an encoder's patience
	NoUpdates    bool // no result has the meta date_update until it is changed
	Control      bool // some values hold characters that XML 1.0 forbids; see the fault control
}

func (o GenerateOptions) withDefaults() GenerateOptions {
	o.Directory = cmp.Or(o.Directory, "form1")
	o.Name = cmp.Or(o.Name, "Form "+o.Directory)
	o.From = cmp.Or(o.From, time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	o.To = cmp.Or(o.To, o.From.AddDate(1, 0, 0))
	o.Items = cmp.Or(o.Items, 14)
	return o
}

// Validate names the first option that Generate cannot work with.
func (o GenerateOptions) Validate() error {
	o = o.withDefaults()
	switch {
	case o.Results < 0 || o.Results > MaxResults:
		return fmt.Errorf("generate form %q: %d results; give 0 to %d", o.Directory, o.Results, MaxResults)
	case o.Items < 1 || o.Items > 1000:
		return fmt.Errorf("generate form %q: %d items; give 1 to 1000", o.Directory, o.Items)
	case !o.From.Before(o.To):
		return fmt.Errorf("generate form %q: from %s is not before to %s", o.Directory, o.From.Format(WallTime), o.To.Format(WallTime))
	case o.To.Sub(o.From) > 100*366*24*time.Hour:
		return fmt.Errorf("generate form %q: the range is longer than 100 years", o.Directory)
	}
	return nil
}

// Generate returns a form whose results are made of hashes of the seed and the
// result's number. It holds their ids and dates; their contents are computed
// when they are asked for. It panics where [GenerateOptions.Validate] gives an
// error.
//
// Results are numbered in the order of their starts; a result is finished
// within the hour or, one in 64, up to ten days later, so that the order of
// dates differs from that of ids while the ids of a date window still lie in
// bounded spans. One in 64 is unfinished with a start only, one in 64 has no
// date at all, and those whose finish would lie beyond To are unfinished too.
// Each has a date_update, which is its last date or, for one in 16, that of an
// edit within the hour after it.
//
// The form's Clock is the machine's time in UTC.
func Generate(o GenerateOptions) *Form {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	g := &generated{o: o, n: int64(o.Results), from: wall(o.From), to: wall(o.To)}
	g.plan()
	g.items, g.words = makeItems(o), makeVocabulary()
	f := &Form{
		ID: fmt.Sprint(1000 + mix(o.Seed, 7)%9000), Name: o.Name, Directory: o.Directory,
		Description: "A generated form: results & answers of seed " + fmt.Sprint(o.Seed),
		Items:       g.items, Metas: generatedMetas(), Views: makeViews(g.items), Labels: makeLabels(g.items),
		Clock:  func() time.Time { return time.Now().UTC() },
		stored: stored{generated: g, records: make([]record, g.n)},
	}
	for n := range g.n {
		f.stored.top = g.id(n)
		f.stored.records[n] = record{id: f.stored.top, date: g.dates(n).filtered()}
	}
	return f
}

// wall returns a time's wall clock as seconds.
func wall(t time.Time) int64 {
	_, offset := t.Zone()
	return t.Unix() + int64(offset)
}

// generated computes results by number, 0 <= number < n.
type generated struct {
	o        GenerateOptions
	n        int64
	from, to int64 // wall-clock seconds
	days     []int64
	burst    int // the day that holds a fifth of all results, -1: none
	items    []Item
	words    vocabulary
}

// mix is a hash of two numbers (the finaliser of splitmix64).
func mix(a, b uint64) uint64 {
	x := a + b*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Salts keep the decisions about one result independent of each other.
const (
	saltDay = iota + 1
	saltID
	saltDelay
	saltBlock
	saltTie
	saltContent
	saltPerson
)

func (g *generated) hash(salt, n uint64) uint64 { return mix(mix(g.o.Seed, salt), n) }

// id returns a result's id; ids ascend with the number and have gaps.
func (g *generated) id(n int64) int64 {
	return firstID + n*idStride + int64(g.hash(saltID, uint64(n))%idStride)
}

// number returns the number of the result that has an id.
func (g *generated) number(id int64) int64 { return (id - firstID) / idStride }
