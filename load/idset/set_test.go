package idset_test

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// drawn returns ids in ascending order with gaps of 1 up to most, and now and then a larger one.
func drawn(random *rand.Rand, n int, most int64) []int64 {
	ids, at := make([]int64, n), int64(-1)
	for i := range ids {
		if at += 1 + random.Int64N(most); most > 1 && random.IntN(500) == 0 {
			at += random.Int64N(1 << 30)
		}
		ids[i] = at
	}
	return ids
}

func setOf(ids []int64) map[int64]bool {
	set := map[int64]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// checkIDs compares a set with a map.
func checkIDs(t *testing.T, what string, got idset.Set, want map[int64]bool) {
	t.Helper()
	sorted := slices.Sorted(maps.Keys(want))
	if all := slices.Collect(got.All()); got == nil || !slices.Equal(all, sorted) || got.Len() != len(sorted) || got.IsEmpty() != (len(sorted) == 0) {
		t.Fatalf("%s: %d, want %d", what, all, sorted)
	}
	if n := len(sorted); n > 0 && (got.Min() != sorted[0] || got.Max() != sorted[n-1]) {
		t.Fatalf("%s: from %d to %d", what, got.Min(), got.Max())
	}
	data := idset.Encode(got)
	if again, err := idset.Decode(data); err != nil || !again.Equal(got) || !bytes.Equal(data, idset.Encode(idset.Of(sorted...))) {
		t.Fatalf("%s: read as %v, %v", what, again, err)
	}
}

// checkSets compares what is made of two sets with what is made of two maps.
func checkSets(t *testing.T, a, b []int64) {
	t.Helper()
	x, y := idset.Of(a...), idset.Of(b...)
	inX, inY := setOf(a), setOf(b)
	union, both, onlyX, between := setOf(append(slices.Clone(a), b...)), map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	least, most := int64(0), int64(0)
	if len(b) > 0 {
		least, most = b[0], max(b[0], b[len(b)/2])
	}
	for id := range inX {
		if both[id] = inY[id]; !inY[id] {
			onlyX[id] = true
			delete(both, id)
		}
		if least <= id && id <= most {
			between[id] = true
		}
	}
	checkIDs(t, "a set", x, inX)
	checkIDs(t, "union", x.Union(y), union)
	checkIDs(t, "intersection", y.Intersect(x), both)
	checkIDs(t, "difference", x.Without(y), onlyX)
	checkIDs(t, "what lies between", x.Between(least, most), between)
	all, twice := idset.Overlap(x, nil, y, x.Without(y))
	checkIDs(t, "all of many", all, union)
	checkIDs(t, "what is in several", twice, inX)
	checkIDs(t, "what is left", x.Union(y).Without(y).Union(x.Intersect(y)), inX)
	checkIDs(t, "a set later", x, inX) // no other set changed it
	if x.Intersects(y) != (len(both) > 0) || x.Equal(y) != maps.Equal(inX, inY) {
		t.Fatalf("%v and %v: %t, %t", x, y, x.Intersects(y), x.Equal(y))
	}
	for id := range union {
		for _, id := range []int64{id - 1, id, id + 1} {
			if x.Contains(id) != inX[id] {
				t.Fatalf("%v contains %d: %t", x, id, x.Contains(id))
			}
		}
	}
}

func TestIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	checkSets(t, nil, nil)
	checkSets(t, []int64{0, math.MaxInt64}, []int64{math.MaxInt64, math.MaxInt64 - 1, 0})
	for _, most := range []int64{1, 2, 20, 1000, 1 << 40} {
		for range needs.Rounds(40, 5) {
			a, b := drawn(random, random.IntN(2000), most), drawn(random, random.IntN(2000), 1+random.Int64N(most))
			for _, id := range a {
				if random.IntN(3) == 0 {
					b = append(b, id)
				}
			}
			random.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
			checkSets(t, a, b)
		}
	}
	many := drawn(random, 70_000, 3)
	random.Shuffle(len(many), func(i, j int) { many[i], many[j] = many[j], many[i] })
	checkIDs(t, "many", idset.Of(many...), setOf(many))
}

// FuzzIDs makes two sets of bytes, each of which is a step from one id to the next.
func FuzzIDs(f *testing.F) {
	f.Add([]byte{1, 1, 1, 255, 1}, []byte{1, 2, 3}, uint8(1))
	f.Add(bytes.Repeat([]byte{1}, 300), bytes.Repeat([]byte{2}, 300), uint8(0))
	f.Fuzz(func(t *testing.T, a, b []byte, shift uint8) {
		if len(a)+len(b) > 1000 {
			return
		}
		ids := func(steps []byte) (ids []int64) {
			at := int64(0)
			for _, step := range steps {
				at = (at + int64(step)<<(step&shift&15)) & math.MaxInt64
				ids = append(ids, at)
			}
			return ids
		}
		checkSets(t, ids(a), ids(b))
	})
}

// FuzzDecodeIDs reads sets of ids that anybody may have written: what is taken is
// a set that is written as the same bytes, anything else is ErrIDs. It takes no more memory
// than the bytes allow.
func FuzzDecodeIDs(f *testing.F) {
	for _, ids := range [][]int64{{}, {0}, {1, 2, 3}, {7, 1 << 40, 1<<63 - 1}, drawn(rand.New(rand.NewPCG(1, 2)), 300, 20)} {
		data := idset.Encode(idset.Of(ids...))
		f.Add(data)
		f.Add(data[:len(data)/2])
		f.Add(append(data, 0))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		ids, err := idset.Decode(data)
		switch {
		case err != nil && !errors.Is(err, idset.ErrDamaged):
			t.Errorf("it is refused by %v", err)
		case err == nil && (!bytes.Equal(idset.Encode(ids), data) || ids.Len() > 64*len(data)):
			t.Errorf("%d bytes are read as %d ids", len(data), ids.Len())
		}
	})
}

// Five million ids take at most 20 MB in a run and 1.5 bytes each on a disk, as long as there
// are not some hundred others between one and the next.
func TestIDsAreSmall(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const n = 1_000_000
	for most, limit := range map[int64]float64{1: 0.05, 20: 0.75, 500: 1.5} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var b idset.Builder
		at := int64(0)
		for range n {
			at += 1 + random.Int64N(most)
			b.Add(at)
		}
		ids := b.Set()
		b = idset.Builder{}
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := float64(after.HeapAlloc-before.HeapAlloc) / n
		if written := float64(len(idset.Encode(ids))) / n; written > limit || kept > 4 {
			t.Errorf("gaps of 1 to %d: %.2f bytes an id in memory, %.2f written", most, kept, written)
		} else {
			t.Logf("gaps of 1 to %d: %.2f bytes an id in memory, %.2f written", most, kept, written)
		}
	}
}
