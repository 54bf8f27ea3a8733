package checkpoint

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/transform"
)

// piece is one that holds the ids of its bounds that lie between 0 and 100.
func piece(t testing.TB, w string, after, through int64, number int) Piece {
	t.Helper()
	p := Piece{Window: window(t, w), After: after, Through: through, ReadAt: at(t, "02-01 12:00"), number: number}
	var ids []int64
	for id := max(after+1, 1); id <= min(through, 100); id++ {
		ids = append(ids, id)
	}
	p.IDs, p.Stats = idset.Of(ids...), transform.Stats{Rows: int64(len(ids))}
	return p
}

func TestChains(t *testing.T) {
	const one, two = "01-01/01-02", "01-02/01-03"
	empty := func(p Piece) Piece {
		p.IDs, p.Stats = idset.Set{}, transform.Stats{}
		return p
	}
	for name, c := range map[string]struct {
		pieces []Piece
		want   string
	}{
		"none":                        {nil, ""},
		"complete":                    {[]Piece{piece(t, one, First, Last, 0)}, "01-01/01-02 (-1,end]"},
		"of two pieces":               {[]Piece{piece(t, one, 5, Last, 1), piece(t, one, First, 5, 0)}, "01-01/01-02 (-1,5] (5,end]"},
		"not to its end":              {[]Piece{piece(t, one, First, 5, 0), piece(t, one, 5, 9, 1)}, "01-01/01-02 (-1,5] (5,9]"},
		"without its beginning":       {[]Piece{piece(t, one, 5, Last, 0)}, "01-01/01-02 (5,end]"},
		"with a gap":                  {[]Piece{piece(t, one, First, 5, 0), piece(t, one, 6, Last, 1)}, "01-01/01-02 (-1,5] (6,end]"},
		"with an overlap":             {[]Piece{piece(t, one, First, 5, 0), piece(t, one, 4, Last, 1)}, "01-01/01-02 (-1,5]"},
		"read twice":                  {[]Piece{piece(t, one, First, 5, 0), piece(t, one, First, 7, 1), piece(t, one, 5, Last, 2), piece(t, one, 7, Last, 3)}, "01-01/01-02 (-1,7] (7,end]"},
		"two windows, in their order": {[]Piece{piece(t, two, 50, Last, 1), piece(t, one, First, 50, 0), empty(piece(t, two, First, 50, 2))}, "01-01/01-02 (-1,50]; 01-02/01-03 (-1,50] (50,end]"},
		"doubles":                     {[]Piece{piece(t, one, First, 50, 0), piece(t, two, First, 9, 1), piece(t, "01-03/01-04", 60, Last, 2)}, "01-03/01-04 (60,end]"},
		"doubles beside another":      {[]Piece{piece(t, one, First, 5, 0), piece(t, two, First, 5, 1), empty(piece(t, "01-03/01-04", First, Last, 2))}, "01-03/01-04 (-1,end]"},
		"open bounds":                 {[]Piece{piece(t, "/01-02", First, Last, 0), empty(piece(t, two, First, Last, 1))}, "../01-02 (-1,end]; 01-02/01-03 (-1,end]"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // whatever order they were found in
				if got := shown(chains(c.pieces)); got != c.want {
					t.Errorf("the chains are %q, want %q", got, c.want)
				}
				rand.Shuffle(len(c.pieces), func(i, j int) { c.pieces[i], c.pieces[j] = c.pieces[j], c.pieces[i] })
			}
		})
	}
}

// TestChainSums: what a chain says of itself is what its pieces hold.
func TestChainSums(t *testing.T) {
	c := chains([]Piece{piece(t, "01-01/01-02", First, 5, 0), piece(t, "01-01/01-02", 5, 9, 1)})[0]
	if c.Ended() || !slices.Equal(c.Gaps(), []Gap{{9, Last}}) || c.Results() != 9 || c.IDs().Len() != 9 {
		t.Errorf("%t, %d, %d, %v", c.Ended(), c.Gaps(), c.Results(), c.IDs())
	}
	c = Chain{Pieces: []Piece{{After: First, Through: 5}, {After: 9, Through: 12}}}
	if !slices.Equal(c.Gaps(), []Gap{{5, 9}, {12, Last}}) {
		t.Errorf("the gaps between pieces are %v", c.Gaps())
	}
	var none Chain
	if none.Ended() || !slices.Equal(none.Gaps(), []Gap{{First, Last}}) || none.Results() != 0 || !none.IDs().IsEmpty() {
		t.Errorf("an empty chain is %+v", none)
	}
}

func TestWithin(t *testing.T) {
	all := chains([]Piece{
		piece(t, "/01-01", First, 3, 0), piece(t, "01-02/01-03", First, 0, 1),
		piece(t, "01-03/01-05", First, 0, 2), piece(t, "01-06/01-07", First, 0, 3),
	})
	i := &Inherited{Chains: all}
	for w, want := range map[string]string{
		"/":            "../01-01 (-1,3]; 01-02/01-03 (-1,0]; 01-03/01-05 (-1,0]; 01-06/01-07 (-1,0]",
		"/01-05":       "../01-01 (-1,3]; 01-02/01-03 (-1,0]; 01-03/01-05 (-1,0]",
		"12-31/01-07":  "",
		"01-01/01-07":  "01-02/01-03 (-1,0]; 01-03/01-05 (-1,0]; 01-06/01-07 (-1,0]",
		"01-02/01-03":  "01-02/01-03 (-1,0]",
		"01-02/01-04":  "01-02/01-03 (-1,0]",
		"01-04/01-05":  "",
		"01-06/":       "01-06/01-07 (-1,0]",
		"01-06 00:01/": "",
	} {
		if got := shown(i.Within(window(t, w))); got != want {
			t.Errorf("within %s lie %q, want %q", w, got, want)
		}
	}
}

// TestWithinOverlaps: of two chains that overlap the one that holds more stays,
// so that no result is taken over twice and no span is counted twice.
func TestWithinOverlaps(t *testing.T) {
	small, large := piece(t, "01-01/01-02", First, 3, 0), piece(t, "01-01/01-03", 3, 100, 1)
	large.After = First
	for name, c := range map[string]struct {
		chains []Chain
		want   string
	}{
		"the later one is larger":  {[]Chain{{small.Window, []Piece{small}}, {large.Window, []Piece{large}}}, "01-01/01-03 (-1,100]"},
		"the first one is larger":  {[]Chain{{large.Window, []Piece{large}}, {window(t, "01-02/01-04"), []Piece{small}}}, "01-01/01-03 (-1,100]"},
		"equal ones":               {[]Chain{{small.Window, []Piece{small}}, {large.Window, []Piece{small}}}, "01-01/01-02 (-1,3]"},
		"they meet and do not lap": {[]Chain{{small.Window, []Piece{small}}, {window(t, "01-02/01-04"), []Piece{large}}}, "01-01/01-02 (-1,3]; 01-02/01-04 (-1,100]"},
	} {
		if got := shown((&Inherited{Chains: c.chains}).Within(extract.Window{})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWithinNeverOverlaps whatever chains there are, and gives only some that
// lie in the window.
func TestWithinNeverOverlaps(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	day := func(n int) time.Time { return time.Date(2026, 1, 1+n, 0, 0, 0, 0, time.UTC) }
	for range 2000 {
		pieces := make([]Piece, 0, 8)
		for n := range 1 + random.IntN(8) {
			from := random.IntN(20)
			w := extract.Window{From: day(from), To: day(from + 1 + random.IntN(5))}
			if random.IntN(8) == 0 {
				w.From = time.Time{}
			}
			pieces = append(pieces, Piece{Window: w, After: First, Through: Last, number: n, IDs: idset.Of(int64(n)), Stats: transform.Stats{Rows: 1}})
		}
		i := &Inherited{Chains: chains(pieces)}
		from := random.IntN(20)
		w := extract.Window{From: day(from), To: day(from + 1 + random.IntN(20))}
		var last time.Time
		for n, c := range i.Within(w) {
			if c.Window.From.Before(w.From) || c.Window.To.After(w.To) || n > 0 && c.Window.From.Before(last) {
				t.Fatalf("within %s: %s of %s", w, shown(i.Within(w)), shown(i.Chains))
			}
			last = c.Window.To
		}
	}
}

// TestUsable: a piece is of use where it is young enough and its window had
// ended when it was read; so is a count.
func TestUsable(t *testing.T) {
	now := at(t, "02-03 12:00")
	ended := func(at time.Time) time.Time { return at.Add(-time.Minute) }
	for name, c := range map[string]struct {
		window, readAt string
		most           time.Duration
		fits           bool
	}{
		"no bound":                 {"01-01/01-02", "01-03 12:00", 0, true},
		"young enough":             {"01-01/01-02", "02-03 11:00", time.Hour, true},
		"too old":                  {"01-01/01-02", "02-03 10:59", time.Hour, false},
		"of a clock that is ahead": {"01-01/01-02", "02-03 13:01", time.Hour, false},
		"just ended":               {"01-01/02-03 11:59", "02-03 12:00", 0, true},
		"not ended yet":            {"01-01/02-03 12:00", "02-03 12:00", 0, false},
		"ends in the future":       {"01-01/02-04", "02-03 12:00", 0, false},
		"without an end":           {"01-01/", "02-03 12:00", 0, false},
		"without a beginning":      {"/01-02", "02-03 12:00", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := piece(t, c.window, First, Last, 0)
			p.ReadAt = at(t, c.readAt)
			w := window(t, c.window)
			i := &Inherited{all: []Piece{p}, Header: Header{Counts: []Count{{Window: load.Range{From: load.Wall(w.From), To: load.Wall(w.To)}, N: 5, At: p.ReadAt}}}}
			i.Usable(now, c.most, ended)
			if len(i.Chains) > 0 != c.fits || len(i.Counts) > 0 != c.fits {
				t.Errorf("chains %s, counts %v; want that it fits: %t", shown(i.Chains), i.Counts, c.fits)
			}
		})
	}
}

// TestUsableLeavesGaps: where one piece of a chain is of no use, the others are.
func TestUsableLeavesGaps(t *testing.T) {
	pieces := []Piece{piece(t, "01-01/01-02", First, 5, 0), piece(t, "01-01/01-02", 5, 9, 1), piece(t, "01-01/01-02", 9, Last, 2)}
	pieces[1].ReadAt = at(t, "01-20 12:00")
	i := &Inherited{all: pieces}
	i.Usable(at(t, "02-01 13:00"), 24*time.Hour, func(now time.Time) time.Time { return now })
	if got := shown(i.Chains); got != "01-01/01-02 (-1,5] (9,end]" {
		t.Errorf("usable is %s", got)
	}
}

// TestNewest is that of the youngest piece, or when the checkpoint was begun.
func TestNewest(t *testing.T) {
	i := &Inherited{Header: Header{OpenedAt: at(t, "02-01 12:00")}, all: []Piece{piece(t, "01-01/01-02", First, Last, 0)}}
	if got := i.Newest(); !got.Equal(at(t, "02-01 12:00")) {
		t.Error(got)
	}
	i.all[0].ReadAt = at(t, "02-02 12:00")
	if got := i.Newest(); !got.Equal(at(t, "02-02 12:00")) {
		t.Error(got)
	}
}
