package formservice

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// calendars returns generated results in the shapes that the calendar has to cope with.
func calendars() map[string]*generated {
	made := map[string]*generated{}
	for name, o := range map[string]GenerateOptions{
		"a year":          {Results: 12_000},
		"a century":       {Results: 5000, From: date("1926-01-01"), To: date("2026-01-01")},
		"a week":          {Results: 5000, From: date("2026-01-01"), To: date("2026-01-08")},
		"an hour":         {Results: 9000, From: date("2026-01-01"), To: date("2026-01-01").Add(time.Hour)},
		"a second":        {Results: 500, From: date("2026-01-01"), To: date("2026-01-01").Add(time.Second)},
		"a day and a bit": {Results: 500, From: date("2026-01-01").Add(time.Minute), To: date("2026-01-02").Add(time.Hour)},
		"before 1970":     {Results: 4000, From: date("1969-01-01"), To: date("1971-01-01")},
		"even":            {Results: 4000, Even: true},
		"few":             {Results: 7},
		"finished":        {Results: 4000, NoUnfinished: true},
		"prompt":          {Results: 4000, NoLate: true},
	} {
		made[name] = Generate(o).stored.base
	}
	return made
}

// TestStartsNeverFall is what every search by date relies on.
func TestStartsNeverFall(t *testing.T) {
	for name, g := range calendars() {
		prev := g.from
		for n := range g.n {
			at := g.start(n)
			if at < prev || at >= g.to {
				t.Fatalf("%s: result %d is started at %d after %d in %d to %d", name, n, at, prev, g.from, g.to)
			}
			prev = at
		}
	}
}

// TestDelaysAreBounded is what masks and blocks rely on: only the late slot of
// a block takes more than an hour, and never more than ten days.
func TestDelaysAreBounded(t *testing.T) {
	for name, g := range calendars() {
		for n := range g.n {
			late, open, undated := g.slots(n / blockSize)
			d := g.dates(n)
			filtered, dated := d.filtered()
			switch n % blockSize {
			case undated:
				if dated {
					t.Fatalf("%s: result %d has a date", name, n)
				}
				continue
			case open:
				if d.finish != never || !dated || filtered != d.start {
					t.Fatalf("%s: result %d is finished", name, n)
				}
			}
			most := int64(soon)
			if n%blockSize == late {
				most = latest
			}
			if filtered < d.start || filtered > d.start+most || filtered < g.from || filtered >= g.to {
				t.Fatalf("%s: result %d is started at %d and dated %d", name, n, d.start, filtered)
			}
			if g.quiet(filtered) {
				t.Fatalf("%s: result %d is dated on a quiet day", name, n)
			}
		}
	}
}

// TestSlotsDiffer checks that no result is two things at once.
func TestSlotsDiffer(t *testing.T) {
	g := Generate(GenerateOptions{Results: 1}).stored.base
	seen := map[int64]bool{}
	for block := range int64(5000) {
		late, open, undated := g.slots(block)
		if late == open || open == undated || late == undated || min(late, open, undated) < 0 || max(late, open, undated) >= blockSize {
			t.Fatalf("block %d: late %d, open %d, undated %d", block, late, open, undated)
		}
		seen[late] = true
	}
	if len(seen) != blockSize {
		t.Errorf("only %d slots are ever late", len(seen))
	}
}

func TestIDsAndNumbers(t *testing.T) {
	for name, g := range calendars() {
		prev := g.o.FirstID - 1
		for n := range min(g.n, 1000) {
			id := g.id(n)
			if id <= prev {
				t.Fatalf("%s: id %d of %d follows %d", name, id, n, prev)
			}
			for between := prev + 1; between < id; between++ {
				if _, ok := g.number(between); ok {
					t.Fatalf("%s: the id %d between two results has a number", name, between)
				}
				if got := g.firstFrom(between, false); got != n {
					t.Fatalf("%s: the first result from id %d is %d, want %d", name, between, got, n)
				}
			}
			if got, ok := g.number(id); !ok || got != n {
				t.Fatalf("%s: id %d has number %d, want %d", name, id, got, n)
			}
			if a, b := g.firstFrom(id, false), g.firstFrom(id, true); a != n || b != n+1 {
				t.Fatalf("%s: from id %d: %d and, beyond it, %d; want %d and %d", name, id, a, b, n, n+1)
			}
			prev = id
		}
		for _, id := range []int64{everything.minID, -1, 0, everything.maxID} {
			if _, ok := g.number(id); ok {
				t.Errorf("%s: id %d has a number", name, id)
			}
		}
	}
}

// TestMaskEqualsDates compares a mask with the dates of its results, one by one.
func TestMaskEqualsDates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, g := range calendars() {
		for range 200 {
			s := newResultsQuery().selection
			s.dated = rng.IntN(5) > 0
			s.from = g.from - 10 + rng.Int64N(g.to-g.from+20)
			s.to = s.from + rng.Int64N(3*(g.to-g.from))/(1+rng.Int64N(300))
			if rng.IntN(2) == 0 {
				s.minID = g.o.FirstID + rng.Int64N(3*g.n)
				s.maxID = s.minID + rng.Int64N(3*g.n)
			}
			block := rng.Int64N((g.n + blockSize - 1) / blockSize)
			var want uint64
			for n := block * blockSize; n < min(g.n, (block+1)*blockSize); n++ {
				id := g.id(n)
				date, dated := g.dates(n).filtered()
				if s.minID <= id && id <= s.maxID && s.hasDate(id, date, dated) {
					want |= 1 << (n % blockSize)
				}
			}
			if got := g.mask(block, s); got != want {
				t.Fatalf("%s: block %d of %+v: %d results, want %d", name, block, s, bits.OnesCount64(got), bits.OnesCount64(want))
			}
			visited := false
			for b := range g.blocks(s) {
				visited = visited || b == block
			}
			if want != 0 && !visited {
				t.Fatalf("%s: block %d of %+v is not visited", name, block, s)
			}
		}
	}
}

// TestBlocksKeepTheOrder also when a walk goes down or is left early.
func TestBlocksKeepTheOrder(t *testing.T) {
	g := Generate(GenerateOptions{Results: 1000}).stored.base
	for _, desc := range []bool{false, true} {
		s := everything
		s.desc = desc
		var got []int64
		for b := range g.blocks(s) {
			if got = append(got, b); len(got) == 3 {
				break
			}
		}
		want := []int64{0, 1, 2}
		if desc {
			want = []int64{15, 14, 13}
		}
		equalIDs(t, "blocks", got, want...)
	}
	for range (*generated)(nil).blocks(everything) {
		t.Error("no form has a block")
	}
}

func TestWall(t *testing.T) {
	zone := time.FixedZone("x", -5*3600)
	if got := wall(time.Date(2026, 1, 1, 12, 0, 0, 0, zone)); got != date("2026-01-01").Unix()+12*3600 {
		t.Errorf("wall clock %d", got)
	}
}

// TestMix guards the hash: other numbers would silently change every form that
// a test names by its seed.
func TestMix(t *testing.T) {
	if a, b := mix(0, 0), mix(0, 1); a == b || mix(1, 0) == a {
		t.Error("the hash collides on small numbers")
	}
	ones := 0
	for i := range uint64(1000) {
		ones += bits.OnesCount64(mix(7, i) ^ mix(7, i+1))
	}
	if ones < 31_000 || ones > 33_000 {
		t.Errorf("neighbours differ in %d of 64,000 bits, want about half", ones)
	}
}
