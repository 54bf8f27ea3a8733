package formservice

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func matches(s selection, r record) bool {
	return s.minID <= r.id && r.id <= s.maxID && (!s.dated || r.date != never && s.after < r.date && r.date < s.before)
}

// randomSelection draws bounds that often cut close to results.
func randomSelection(rng *rand.Rand, f *Form) selection {
	s := everything
	s.desc = rng.IntN(2) == 0
	from, to := f.span()
	if rng.IntN(4) > 0 {
		s.dated = true
		span := []int64{1, 60, 3600, daySize, 12 * daySize, to - from}[rng.IntN(6)]
		s.after = from - 6 + rng.Int64N(to-from+10)
		s.before = s.after + 2 + rng.Int64N(span)
		if rng.IntN(6) == 0 {
			s.after = everything.after
		}
		if rng.IntN(6) == 0 {
			s.before = everything.before
		}
	}
	last := f.stored.top
	if rng.IntN(3) == 0 {
		s.minID = last - rng.Int64N(last/100+100)
	}
	if rng.IntN(3) == 0 {
		s.maxID = last - rng.Int64N(last/100+100)
	}
	return s
}

// TestGeneratedContent checks that a form of some size holds what the brief of
// the test service promises.
func TestGeneratedContent(t *testing.T) {
	f := Generate(GenerateOptions{Results: 20_000})
	var prev int64
	var lastDate string
	var swapped, ties, open, undated, missing, empty, none, several, split, hostile int
	days, seconds := map[string]int{}, map[string]int{}
	nasty := Hostile()
	f.Each(func(r Result) bool {
		if r.ID <= prev {
			t.Fatalf("id %d after %d", r.ID, prev)
		}
		prev = r.ID
		finish, _ := r.Meta(metaFinish)
		start, _ := r.Meta(metaStart)
		switch {
		case finish == "" && start == "":
			undated++
		case finish == "":
			open++
		default:
			if finish < lastDate {
				swapped++
			}
			lastDate = finish
			days[finish[:10]]++
			seconds[finish]++
			if seconds[start]++; seconds[start] > 1 {
				ties++
			}
			if finish < "2025-01-01" || finish >= "2026-01-01" || start > finish {
				t.Fatalf("result %d runs from %s to %s", r.ID, start, finish)
			}
		}
		missing += len(f.Items) - len(r.Items)
		ids := map[string]bool{}
		for _, a := range r.Items {
			if ids[a.ID] {
				split++
			}
			ids[a.ID] = true
			switch {
			case len(a.Values) == 0:
				none++
			case a.Values[0] == "":
				empty++
			case len(a.Values) > 1:
				several++
			}
			for _, v := range a.Values {
				if slices.Contains(nasty, v) {
					hostile++
				}
			}
		}
		return true
	})
	for name, n := range map[string]int{
		"dates that fall with the id": swapped, "ties": ties, "unfinished": open, "undated": undated, "unanswered": missing,
		"empty": empty, "without a value": none, "several values": several, "one id twice": split, "hostile": hostile,
	} {
		if n < 50 {
			t.Errorf("%s: only %d", name, n)
		}
	}
	most, quiet := 0, 365-len(days)
	for _, n := range days {
		most = max(most, n)
	}
	if most < 3000 || quiet < 20 {
		t.Errorf("the busiest day has %d results, %d days have none", most, quiet)
	}
	crowded := 0
	for _, n := range seconds {
		crowded = max(crowded, n)
	}
	if crowded < 150 {
		t.Errorf("the busiest second has %d results, want more than a page", crowded)
	}
}

func TestGenerateIsDeterministic(t *testing.T) {
	a, b := collect(Generate(GenerateOptions{Results: 300})), collect(Generate(GenerateOptions{Results: 300}))
	c := collect(Generate(GenerateOptions{Results: 300, Seed: 1}))
	if !reflect.DeepEqual(a, b) {
		t.Error("equal options give different results")
	}
	if reflect.DeepEqual(a, c) {
		t.Error("different seeds give equal results")
	}
}

func TestGenerateOptionsValidate(t *testing.T) {
	for want, o := range map[string]GenerateOptions{
		"results":          {Results: MaxResults + 1},
		"items":            {Items: 1001},
		"not before":       {From: date("2025-01-02"), To: date("2025-01-01")},
		"100 years":        {From: date("1800-01-01"), To: date("2025-01-01")},
		"-1 results":       {Results: -1},
		`generate form "x`: {Directory: "x", Items: -1},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
	if err := (GenerateOptions{Items: 1000, Results: MaxResults}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestItemIDs checks that ids are unique, whatever the number of items.
func TestItemIDs(t *testing.T) {
	for _, n := range []int{1, 2, 5, 9, 14, 60, 1000} {
		ids, indexes := map[string]bool{}, map[int]bool{}
		for _, it := range Generate(GenerateOptions{Items: n}).Items {
			ids[it.ID], indexes[it.Index] = true, true
		}
		if len(ids) != n || len(indexes) != n {
			t.Errorf("%d items: %d ids, %d positions", n, len(ids), len(indexes))
		}
	}
}
