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
func records(f *Form) []record {
	var all []record
	f.Each(func(r Result) bool { all = append(all, newRecord(r)); return true })
	return all
}

// bruteForce is the definition of a selection: look at every result.
func bruteForce(all []record, s selection) []int64 {
	ids := []int64{}
	for _, r := range all {
		if matches(s, r) {
			ids = append(ids, r.id)
		}
	}
	if s.desc {
		slices.Reverse(ids)
	}
	return ids
}

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
		from, to := f.span()
		sel.after, sel.before = max(sel.after, from-1), min(sel.before, to)
		dates := "fs_min_date=" + stamp(sel.after+1) + "&fs_max_date=" + stamp(sel.before-1)
		bounds := "fs_sort_direction=asc&" + dates
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
		if n := s.count(t, dates); n != len(want) {
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
