package formservice

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestGeneratedContent checks that a form of some size holds what tests of it count on.
func TestGeneratedContent(t *testing.T) {
	f := Generate(GenerateOptions{Results: 20_000})
	seen, days, seconds := map[string]int{}, map[string]int{}, map[string]int{}
	note := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	nasty := Hostile()
	var prev int64
	lastDate := ""
	f.Each(func(r Result) bool {
		start, finish, update := r.column(metaStart)[0], r.column(metaFinish)[0], r.column(metaUpdate)[0]
		if r.ID <= prev || start > finish && finish != "" || update < max(start, finish, "2025-01-01") || max(finish, update) >= "2026-01-01" {
			t.Fatalf("after id %d result %d is of %q, %q and %q", prev, r.ID, start, finish, update)
		}
		prev = r.ID
		note("edited", finish != "" && update > finish)
		note("undated", finish == "" && start == "")
		note("unfinished", finish == "" && start != "")
		if finish != "" {
			note("dates that fall with the id", finish < lastDate)
			note("ties", seconds[start] > 0)
			lastDate = finish
			days[finish[:10]]++
			seconds[finish]++
			seconds[start]++
		}
		note("unanswered", len(r.Items) < len(f.Items))
		ids := map[string]bool{}
		for _, a := range r.Items {
			note("one id twice", ids[a.ID])
			ids[a.ID] = true
			note("without a value", len(a.Values) == 0)
			note("empty", len(a.Values) > 0 && a.Values[0] == "")
			note("several values", len(a.Values) > 1)
			note("hostile", slices.ContainsFunc(a.Values, func(v string) bool { return slices.Contains(nasty, v) }))
		}
		return true
	})
	for _, what := range []string{
		"edited", "undated", "unfinished", "dates that fall with the id", "ties", "unanswered", "one id twice", "without a value", "empty", "several values", "hostile",
	} {
		if seen[what] < 50 {
			t.Errorf("%s: only %d", what, seen[what])
		}
	}
	busiest, crowded := 0, 0
	for _, n := range days {
		busiest = max(busiest, n)
	}
	for _, n := range seconds {
		crowded = max(crowded, n)
	}
	if quiet := 365 - len(days); busiest < 3000 || quiet < 20 || crowded < 150 {
		t.Errorf("the busiest day has %d results, %d days have none, and the busiest second has %d, want more than a page", busiest, quiet, crowded)
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
