package load_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// part makes a part of a day with a checksum of one letter.
func part(day, generation, n int, letter string) load.Part {
	from, to := dayWindow(day)
	return load.Part{
		Path: load.PartName(load.PartKey{DT: load.DTValue("day", to), From: from, To: to, Generation: generation, N: n, Extension: ".csv"}),
		From: load.Wall(from), To: load.Wall(to), Rows: 1, MinID: 1, MaxID: 1, Bytes: 1, SHA256: strings.Repeat(letter, 64),
	}
}

func prepared(p load.Part) load.PreparedPart {
	return load.PreparedPart{Part: p, Prepared: load.Prepared{Name: p.Path, Bytes: p.Bytes, SHA256: p.SHA256}}
}

func TestReuseParts(t *testing.T) {
	old := []load.Part{part(1, 1, 0, "a"), part(2, 1, 0, "b"), part(2, 1, 1, "b"), part(3, 1, 0, "c"), part(5, 1, 0, "e"), part(5, 1, 1, "e")}
	fresh := []load.PreparedPart{
		prepared(part(1, 2, 0, "a")), // as it was
		prepared(part(2, 2, 0, "b")), // as it was, and its twin is gone
		prepared(part(3, 2, 0, "d")), // other content
		prepared(part(4, 2, 0, "a")), // another window
		prepared(part(5, 2, 0, "e")), // twins, as they were
		prepared(part(5, 2, 1, "e")),
	}
	// Rejected results are not in a part's bytes: the new number is the right one.
	old[1].Rejected, old[1].Letters, fresh[0].Part.Rejected, fresh[0].Part.Letters = 2, "old", 3, "new"
	reused := slices.Clone(old)
	reused[1].Rejected, reused[1].Letters, reused[0].Rejected, reused[0].Letters = 0, "", 3, "new"
	want := load.Reuse{
		Parts:      []load.Part{reused[0], reused[1], fresh[2].Part, fresh[3].Part, old[4], old[5]},
		New:        []load.Prepared{fresh[2].Prepared, fresh[3].Prepared},
		Duplicates: []load.Prepared{fresh[0].Prepared, fresh[1].Prepared, fresh[4].Prepared, fresh[5].Prepared},
	}
	if got := load.ReuseParts(old, fresh); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestReusePartsTellsApart(t *testing.T) {
	base := part(1, 1, 0, "a")
	for name, change := range map[string]func(*load.Part){
		"rows":      func(p *load.Part) { p.Rows++ },
		"bytes":     func(p *load.Part) { p.Bytes++ },
		"checksum":  func(p *load.Part) { p.SHA256 = strings.Repeat("b", 64) },
		"from":      func(p *load.Part) { p.From = load.WallTime{} },
		"to":        func(p *load.Part) { p.To = load.WallTime{} },
		"undated":   func(p *load.Part) { p.Undated = true },
		"folder":    func(p *load.Part) { p.Path = "dt=2026-01-09/" + p.Path[strings.Index(p.Path, "/")+1:] },
		"extension": func(p *load.Part) { p.Path += ".gz" },
	} {
		changed := base
		change(&changed)
		if got := load.ReuseParts([]load.Part{base}, []load.PreparedPart{prepared(changed)}); len(got.Duplicates) > 0 {
			t.Errorf("another %s is taken for the same", name)
		}
	}
}

func hours(from, to int) load.Range {
	at := func(h int) load.WallTime {
		if h < 0 {
			return load.WallTime{}
		}
		return load.Wall(time.Date(2026, 1, 1, h, 0, 0, 0, time.UTC))
	}
	return load.Range{From: at(from), To: at(to)}
}

func TestIntersecting(t *testing.T) {
	ranges := []load.Range{hours(-1, 2), hours(2, 4), hours(4, 8), hours(8, -1)}
	parts := make([]load.Part, 0, len(ranges)+1)
	for i, r := range ranges {
		parts = append(parts, load.Part{Path: fmt.Sprint(i), From: r.From, To: r.To})
	}
	parts = append(parts, load.Part{Path: "undated", Undated: true})
	for _, test := range []struct {
		ask   load.Range
		hit   string
		whole load.Range
	}{
		{hours(2, 4), "1", hours(2, 4)},
		{hours(3, 4), "1", hours(2, 4)},
		{hours(3, 5), "12", hours(2, 8)},
		{hours(4, 4), "", hours(4, 4)},
		{hours(1, 2), "0", hours(-1, 2)},
		{hours(7, 9), "23", hours(4, -1)},
		{hours(-1, -1), "0123", hours(-1, -1)},
	} {
		hit, rest, whole := load.Intersecting(parts, test.ask)
		var got string
		for _, p := range hit {
			got += p.Path
		}
		if got != test.hit || whole != test.whole || len(hit)+len(rest) != len(parts) {
			t.Errorf("%v hits %q and widens to %v, want %q and %v", test.ask, got, whole, test.hit, test.whole)
		}
	}
}

// Whatever is asked for, the widened range holds the asked one and whole
// parts, and no part that stays touches it.
func TestIntersectingAlwaysWhole(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var parts []load.Part
		for h := 0; h < 24; {
			end := h + 1 + source.IntN(5)
			if source.IntN(4) > 0 { // some hours are in no part
				r := hours(h, end)
				parts = append(parts, load.Part{Path: fmt.Sprint(h), From: r.From, To: r.To})
			}
			h = end
		}
		from := source.IntN(24)
		ask := hours(from, from+1+source.IntN(6))
		hit, rest, whole := load.Intersecting(parts, ask)
		if whole.From.After(ask.From.Time) || whole.To.Before(ask.To.Time) {
			t.Fatalf("%v became %v", ask, whole)
		}
		for _, p := range hit {
			if p.From.Before(whole.From.Time) || p.To.After(whole.To.Time) {
				t.Fatalf("%v cuts the part %v..%v", whole, p.From, p.To)
			}
		}
		for _, p := range rest {
			if p.From.Before(whole.To.Time) && whole.From.Before(p.To.Time) {
				t.Fatalf("%v touches the part %v..%v, which stays", whole, p.From, p.To)
			}
		}
	}
}

func TestSortPartsOfOneWindow(t *testing.T) {
	parts := []load.Part{
		{Path: "u", Undated: true},
		{Path: "open", From: hours(1, 2).From},
		part(1, 1, 1, "a"), part(1, 1, 0, "a"),
		{Path: "short", From: hours(1, 2).From, To: hours(1, 2).To},
		{Path: "first", To: hours(1, 2).To},
	}
	load.SortParts(parts)
	got := make([]string, 0, len(parts))
	for _, p := range parts {
		got = append(got, p.Path)
	}
	want := []string{"first", part(1, 1, 0, "a").Path, part(1, 1, 1, "a").Path, "short", "open", "u"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
