package pipelines

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	v1 "github.com/formetl/formetl/extract/v1"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

type seenMap = map[schemas.Source]transform.Seen

// addedUp is what the packs of windows stand for.
func addedUp(windows ...seenMap) seenMap {
	var s transform.Stats
	for _, seen := range windows {
		s.Add(transform.Stats{Seen: seen})
	}
	return s.Seen
}

// choicesFrom are values from one number up to another, each seen once.
func choicesFrom(from, to int) map[string]int64 {
	m := map[string]int64{}
	for i := from; i < to; i++ {
		m[fmt.Sprint("value ", i)] = 1
	}
	return m
}

func TestSeenIsPacked(t *testing.T) {
	for name, seen := range map[string]seenMap{
		"nothing":     nil,
		"the id":      {{Kind: schemas.FromResultID}: {Filled: 1 << 40}},
		"attributes":  {itemOf("1"): {ItemType: "radio", Index: 7}, itemOf("2"): {ItemType: "radio"}, itemOf("3"): {Index: -1}},
		"choices":     {itemOf("1"): {Filled: 3, Choices: map[string]int64{"a": 2, "b": 1}}, itemOf("2"): {Filled: 300, Choices: map[string]int64{"b": 300, "": 0}}},
		"many":        {itemOf("1"): {Filled: 9, ItemType: "dropdown", Many: true}, itemOf("2"): {}},
		"the most":    {itemOf("1"): {Filled: 500, Choices: choicesFrom(0, transform.MostChoices)}},
		"none of our": {itemOf("1"): {Filled: -1, Choices: map[string]int64{string(make([]byte, 201)): 1}}, itemOf("2"): {Many: true, Choices: map[string]int64{"a": -2}}},
	} {
		var d seenDictionary
		d.pack(seenMap{itemOf("9"): {ItemType: "other"}, itemOf("2"): {Choices: choicesFrom(0, 3)}}) // of another window
		if got, want := d.pack(seen).unpack(), addedUp(seen); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v was packed, and is %v", name, want, got)
		}
	}
}

// randomWindows are windows of columns of few, some and very many choices.
func randomWindows(r *rand.Rand, n int) []seenMap {
	windows := make([]seenMap, n)
	for i := range windows {
		windows[i] = seenMap{}
		for column, choices := range []int{3, 200, 700, 2500} {
			s := transform.Seen{Filled: r.Int64N(1000), Index: r.IntN(3), ItemType: []string{"", "radio", "checkbox"}[r.IntN(3)], Many: r.IntN(60) == 0}
			if r.IntN(5) == 0 {
				continue
			}
			for range r.IntN(120) {
				if s.Choices == nil && !s.Many {
					s.Choices = map[string]int64{}
				}
				if !s.Many {
					s.Choices[fmt.Sprint("value ", r.IntN(choices))]++
				}
			}
			windows[i][itemOf(fmt.Sprint(column))] = s
		}
	}
	return windows
}

// TestSumsOfPacks are those of what was packed, for any windows and whatever
// order they finished in. Only a column that holds more values than a run keeps
// is Many in all of them.
func TestSumsOfPacks(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		windows := randomWindows(r, 1+r.IntN(40))
		values := map[schemas.Source]map[string]bool{}
		for _, w := range windows {
			for from, seen := range w {
				if values[from] == nil {
					values[from] = map[string]bool{}
				}
				for v := range seen.Choices {
					values[from][v] = true
				}
			}
		}
		var d seenDictionary
		packs := make([]packedSeen, len(windows))
		for _, i := range r.Perm(len(windows)) {
			packs[i] = d.pack(windows[i])
		}
		from := r.IntN(len(windows))
		to := from + 1 + r.IntN(len(windows)-from)
		for _, span := range [][2]int{{0, len(windows)}, {from, to}} {
			want := addedUp(windows[span[0]:span[1]]...)
			for from, seen := range want {
				if len(values[from]) > mostSeenValues {
					seen.Many, seen.Choices = true, nil
					want[from] = seen
				}
			}
			if got := sumSeen(packs[span[0]:span[1]]); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: windows %v sum up to %v, want %v", seed, span, got, want)
			}
		}
	}
}

// TestColumnIsManyInTheRun once it holds more values than a run keeps: then
// none of them is kept, and records have none.
func TestColumnIsManyInTheRun(t *testing.T) {
	var d seenDictionary
	free, radio := itemOf("1"), itemOf("2")
	few := seenMap{free: {Filled: 3, Choices: choicesFrom(0, 3)}, radio: {Filled: 3, Choices: choicesFrom(0, 2)}}
	first := d.pack(few)
	for from := 0; from < mostSeenValues; from += 100 {
		d.pack(seenMap{free: {Filled: 100, Choices: choicesFrom(from, from+100)}})
	}
	if got := first.unpack(); !reflect.DeepEqual(got, few) {
		t.Errorf("with %d values in the run: %v", mostSeenValues, got)
	}
	last := d.pack(seenMap{free: {Filled: 2, Choices: choicesFrom(mostSeenValues-1, mostSeenValues+1)}})
	want := seenMap{free: {Filled: 3, Many: true}, radio: few[radio]}
	if got := first.unpack(); !reflect.DeepEqual(got, want) {
		t.Errorf("beyond them: %v", got)
	}
	if kept := d.columns[d.column(free)].values; len(kept.texts)+len(kept.numbers) > 0 {
		t.Errorf("%d values are kept", len(kept.texts))
	}
	if again := d.pack(seenMap{free: {Filled: 400, Choices: choicesFrom(0, 400)}}); len(again.data) > 10 || len(last.data) > 10 {
		t.Errorf("packs are of %d and %d bytes", len(last.data), len(again.data))
	}
	r, err := recordWindow(&windowRun{ids: bitmap(1, 2, 3), readAt: 1, stats: transform.Stats{Rows: 3}, seen: first})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.reading()
	if err != nil || !reflect.DeepEqual(got.stats.Seen, want) || r.Stats.Seen["item:1"].Choices != nil {
		t.Errorf("the record gives %v (%v)", got.stats.Seen, err)
	}
	var next seenDictionary
	got.pack(&next)
	w := &windowRun{}
	w.take(got, &d)
	if w.stats.Seen != nil || !reflect.DeepEqual(seenIn([]*windowRun{w}), want) {
		t.Errorf("taken over it is %v, %v", w.stats.Seen, seenIn([]*windowRun{w}))
	}
}

// TestWindowReadAgain: what an earlier reading alone had seen is gone.
func TestWindowReadAgain(t *testing.T) {
	f := &formRun{o: Options{RunID: "r"}}
	read := func(w *windowRun, value string) {
		t.Helper()
		page, err := v1.DecodePage([]byte(`<?xml version="1.0"?><fs_response status="success"><results><result id="1"><items>`+
			`<item id="1" type="radio" index="4"><value>`+value+`</value></item></items></result></results></fs_response>`), "text/xml", v1.Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		defer page.Release()
		s := &schemas.Schema{Name: "s", Columns: []schemas.Column{{Name: "c", From: itemOf("1"), Type: schemas.Type{Kind: schemas.String}}}}
		flattener, err := transform.NewFlattener(s, transform.Options{Zone: time.UTC, Emit: func(arrow.RecordBatch) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer flattener.Release()
		if err := errors.Join(flattener.Append(page), flattener.Flush()); err != nil {
			t.Fatal(err)
		}
		if err := f.take(w, &windowReading{f: f, flattener: flattener, ids: bitmap(1)}); err != nil {
			t.Fatal(err)
		}
	}
	a, b := &windowRun{}, &windowRun{}
	f.windows = []*windowRun{a, b}
	expect := func(want map[string]int64) {
		t.Helper()
		got := f.stats().Seen[itemOf("1")]
		if got.ItemType != "radio" || got.Index != 4 || !maps.Equal(got.Choices, want) {
			t.Errorf("the windows hold %+v, want %v", got, want)
		}
	}
	read(b, "red")
	read(a, "green")
	expect(map[string]int64{"red": 1, "green": 1})
	read(b, "green")
	expect(map[string]int64{"green": 2})
	if b.stats.Rows != 1 || b.stats.Seen != nil {
		t.Errorf("the window keeps %+v", b.stats)
	}
}

// TestPacksAreSmall, however many windows a run has.
func TestPacksAreSmall(t *testing.T) {
	const windows, columns, most = 1000, 300, 8 << 20
	var d seenDictionary
	r := rand.New(rand.NewPCG(1, 2))
	total := 0
	for range windows {
		seen := seenMap{}
		for c := range columns {
			s := transform.Seen{Filled: 2000, ItemType: "radio", Index: c, Choices: map[string]int64{}}
			for v := range 5 {
				s.Choices[fmt.Sprintf("the choice %d of item %d", v, c)] = r.Int64N(800)
			}
			seen[itemOf(fmt.Sprint(c))] = s
		}
		total += len(d.pack(seen).data)
	}
	t.Logf("%d windows of %d columns of 5 choices take %d bytes, %d each", windows, columns, total, total/windows)
	if total > most {
		t.Errorf("%d windows take %d bytes, want %d at most", windows, total, most)
	}
}

// TestSeenSideBySide: windows are packed while others are summed.
func TestSeenSideBySide(t *testing.T) {
	var d seenDictionary
	windows := randomWindows(rand.New(rand.NewPCG(7, 7)), 64)
	packs := make([]packedSeen, len(windows))
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for i := k; i < len(windows); i += 4 {
				packs[i] = d.pack(windows[i])
				if got := packs[i].unpack(); len(got) != len(windows[i]) {
					t.Errorf("window %d has %d columns, want %d", i, len(got), len(windows[i]))
				}
			}
		})
	}
	all.Wait()
	got, want := sumSeen(packs), addedUp(windows...)
	if len(want) != 4 {
		t.Fatalf("%d columns", len(want))
	}
	for from := range want {
		if !reflect.DeepEqual(got[from], want[from]) {
			t.Errorf("%s: %v, want %v", from, got[from], want[from])
		}
	}
}

// FuzzPackedSeen packs what records say that were made by anybody, and gives it
// back as a sum would have it.
func FuzzPackedSeen(f *testing.F) {
	f.Add([]byte(`{"item:1":{"filled":3,"item_type":"radio","index":2,"choices":{"a":1,"b":2}},"result_id":{"filled":3}}`))
	f.Add([]byte(`{"meta:x":{"many":true,"choices":{"":-1}},"item:":{"index":-9223372036854775808}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r statsRecord
		if json.Unmarshal(data, &r.Seen) != nil {
			return
		}
		stats, err := r.stats()
		if err != nil {
			return
		}
		var d seenDictionary
		windows := []seenMap{stats.Seen, nil, stats.Seen}
		packs := make([]packedSeen, 0, len(windows))
		for _, w := range windows {
			packs = append(packs, d.pack(w))
		}
		for _, span := range []int{1, len(windows)} {
			if got, want := sumSeen(packs[:span]), addedUp(windows[:span]...); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s is %v, want %v", data, got, want)
			}
		}
		if !slices.Equal(packs[0].data, packs[2].data) {
			t.Fatalf("%s is packed in two ways", data)
		}
	})
}
