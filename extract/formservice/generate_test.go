package formservice

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// records reads the dates of all results from their metas.
func records(f *Form) []*record {
	var all []*record
	f.Each(func(r Result) bool { all = append(all, newRecord(r)); return true })
	return all
}

// bruteForce is the definition of a selection: look at every result.
func bruteForce(all []*record, s selection) []int64 {
	ids := []int64{}
	for _, r := range all {
		if s.matches(r) {
			ids = append(ids, r.id)
		}
	}
	if s.desc {
		slices.Reverse(ids)
	}
	return ids
}

// randomSelection draws bounds that often cut close to results.
func randomSelection(rng *rand.Rand, f *Form) selection {
	q := newResultsQuery()
	s := q.selection
	s.desc = rng.IntN(2) == 0
	from, to := f.stored.span()
	if rng.IntN(4) > 0 {
		s.dated = true
		span := []int64{1, 60, 3600, daySize, 12 * daySize, to - from}[rng.IntN(6)]
		s.from = from - 5 + rng.Int64N(to-from+10)
		s.to = s.from + rng.Int64N(span)
		if rng.IntN(6) == 0 {
			s.from = q.from
		}
		if rng.IntN(6) == 0 {
			s.to = q.to
		}
	}
	last := f.stored.lastID()
	if rng.IntN(3) == 0 {
		s.minID = last - rng.Int64N(last/100+100)
	}
	if rng.IntN(3) == 0 {
		s.maxID = last - rng.Int64N(last/100+100)
	}
	return s
}

// checkSelections compares counts and walks with brute force.
func checkSelections(t *testing.T, f *Form, seed uint64, rounds int) {
	t.Helper()
	all := records(f)
	rng := rand.New(rand.NewPCG(seed, 2))
	for range rounds {
		s := randomSelection(rng, f)
		want := bruteForce(all, s)
		if got := f.stored.count(s); got != len(want) {
			t.Fatalf("count of %+v: %d, want %d", s, got, len(want))
		}
		skip := rng.IntN(len(want) + 2)
		got := []int64{}
		f.stored.walk(s, skip, func(id int64) bool { got = append(got, id); return true })
		if !slices.Equal(got, want[min(skip, len(want)):]) {
			t.Fatalf("walk of %+v from %d: %d ids, want %d", s, skip, len(got), len(want)-skip)
		}
	}
}

func TestGeneratedEqualsBruteForce(t *testing.T) {
	for _, o := range []GenerateOptions{
		{Results: 5000},
		{Results: 5001, Seed: 9, From: date("2024-02-20"), To: date("2024-03-15")},
		{Results: 3000, Seed: 3, From: date("2025-03-01"), To: date("2025-03-01").Add(5 * time.Hour)},
		{Results: 777, Seed: 4, From: date("1969-12-20"), To: date("1970-01-10"), FirstID: 1},
		{Results: 64, Seed: 5, Even: true},
		{Results: 1, Seed: 6},
		{Results: 2000, Seed: 7, NoUndated: true, NoLate: true, From: date("2025-01-01"), To: date("2025-01-02")},
		{Results: 2000, Seed: 8, NoUnfinished: true, From: date("2025-01-01"), To: date("2025-01-09")},
	} {
		t.Run(fmt.Sprintf("%d results of seed %d", o.Results, o.Seed), func(t *testing.T) {
			f := Generate(o)
			if f.Len() != o.Results {
				t.Fatalf("%d results", f.Len())
			}
			checkSelections(t, f, o.Seed, 80)
		})
	}
}

// TestChangedGeneratedEqualsBruteForce lays held results over generated ones.
func TestChangedGeneratedEqualsBruteForce(t *testing.T) {
	f := Generate(GenerateOptions{Results: 2000, From: date("2025-01-01"), To: date("2025-02-01")})
	for i := range uint64(120) {
		f.insertAny(mix(1, i))
		f.editAny(mix(2, i))
		f.deleteAny(mix(3, i))
		f.deleteAny(mix(4, i))
		f.finishAny(mix(5, i))
	}
	if n := f.Len(); n != 2000-120 {
		t.Errorf("%d results, want %d", n, 2000-120)
	}
	checkSelections(t, f, 1, 80)
}

// TestPagingGivesTheFilteredSet reads random windows over HTTP, by fs_page and
// by fs_min_id.
func TestPagingGivesTheFilteredSet(t *testing.T) {
	f := Generate(GenerateOptions{Results: 900, Items: 2, From: date("2025-01-01"), To: date("2025-02-01")})
	s := startService(t, &Server{Forms: []*Form{f}})
	all := records(f)
	rng := rand.New(rand.NewPCG(5, 5))
	stamp := func(at int64) string { return encode(time.Unix(at, 0).UTC().Format(WallTime)) }
	for range 5 {
		sel := randomSelection(rng, f)
		sel.desc, sel.dated, sel.minID, sel.maxID = false, true, everything.minID, everything.maxID
		sel.from, sel.to = max(sel.from, f.stored.base.from), min(sel.to, f.stored.base.to)
		bounds := "fs_sort_direction=asc&fs_min_date=" + stamp(sel.from) + "&fs_max_date=" + stamp(sel.to)
		want := bruteForce(all, sel)
		byPage, byKey := []int64{}, []int64{}
		for page := 1; ; page++ {
			ids := s.ids(t, fmt.Sprintf("%s&fs_limit=37&fs_page=%d", bounds, page))
			byPage = append(byPage, ids...)
			if len(ids) < 37 {
				break
			}
		}
		for next := int64(1); ; {
			ids := s.ids(t, fmt.Sprintf("%s&fs_min_id=%d", bounds, next))
			byKey = append(byKey, ids...)
			if len(ids) < 100 {
				break
			}
			next = ids[len(ids)-1] + 1
		}
		equalIDs(t, "by page", byPage, want...)
		equalIDs(t, "by key", byKey, want...)
		count := "fs_min_date=" + stamp(sel.from) + "&fs_max_date=" + stamp(sel.to)
		if n := s.count(t, count); n != len(want) {
			t.Errorf("count %d, want %d", n, len(want))
		}
	}
}

// TestSearchEqualsBruteForce searches and sorts a generated form over HTTP.
func TestSearchEqualsBruteForce(t *testing.T) {
	f := Generate(GenerateOptions{Results: 400})
	s := startService(t, &Server{Forms: []*Form{f}})
	all := collect(f)
	columns := append([]string{metaStatus, "login_username", metaFinish, "score"}, itemIDs(f)...)
	rng := rand.New(rand.NewPCG(6, 6))
	for range 25 {
		q := newResultsQuery()
		query := "fs_limit=100"
		q.any = rng.IntN(2) == 0
		if q.any {
			query += "&fs_search_method=or"
		}
		for _, op := range operators()[:1+rng.IntN(3)] {
			column := columns[rng.IntN(len(columns))]
			term := firstValue(all[rng.IntN(len(all))], column)
			if runes := []rune(term); len(runes) > 2 && op != Equals {
				term = string(runes[:2])
			}
			q.where = append(q.where, Condition{column, op, term}.Holds)
			query += fmt.Sprintf("&fs_search_%s_%s=%s", op, column, encode(term))
		}
		var want []int64
		for _, r := range slices.Backward(all) {
			if q.accepts(r) && len(want) < 100 {
				want = append(want, r.ID)
			}
		}
		equalIDs(t, query, s.ids(t, query), want...)
	}
}

func itemIDs(f *Form) []string {
	ids := make([]string, 0, len(f.Items))
	for _, it := range f.Items {
		ids = append(ids, it.ID)
	}
	return ids
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

func TestTidyForm(t *testing.T) {
	f := Generate(GenerateOptions{Results: 3000, NoUnfinished: true, NoLate: true, NoHostile: true})
	nasty := Hostile()
	f.Each(func(r Result) bool {
		if v, _ := r.Meta(metaFinish); v == "" {
			t.Errorf("result %d is unfinished", r.ID)
		}
		for _, a := range r.Items {
			for _, v := range a.Values {
				if len(v) > 3 && slices.Contains(nasty, v) {
					t.Errorf("result %d holds %q", r.ID, v)
				}
			}
		}
		return !t.Failed()
	})
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

// TestTenMillion checks that the largest form costs nothing to make and that
// counts and far pages are right where they can be known.
func TestTenMillion(t *testing.T) {
	f := Generate(GenerateOptions{Results: MaxResults})
	if n := f.Len(); n != MaxResults {
		t.Fatalf("%d results", n)
	}
	half := newResultsQuery().selection
	half.dated, half.to = true, f.stored.base.from+180*daySize
	rest := newResultsQuery().selection
	rest.dated, rest.from = true, half.to+1
	dated := newResultsQuery().selection
	dated.dated = true
	if a, b, all := f.stored.count(half), f.stored.count(rest), f.stored.count(dated); a+b != all {
		t.Errorf("%d + %d results with a date, want %d", a, b, all)
	}
	var id int64
	f.stored.walk(dated, f.stored.count(dated)-1, func(last int64) bool { id = last; return true })
	if r, ok := f.Get(id); !ok || id > f.stored.base.id(blockSize) {
		t.Errorf("the last page ends with %d: %v", id, r)
	}
}

func TestGenerateOptionsValidate(t *testing.T) {
	for want, o := range map[string]GenerateOptions{
		"results":          {Results: MaxResults + 1},
		"items":            {Items: 1001},
		"not before":       {From: date("2025-01-02"), To: date("2025-01-01")},
		"100 years":        {From: date("1800-01-01"), To: date("2025-01-01")},
		"give 1 or more":   {FirstID: -1},
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
