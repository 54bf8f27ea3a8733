package formservice

import (
	"strings"
	"testing"
	"unicode"
)

// TestWide holds the form to what it is for.
func TestWide(t *testing.T) {
	f := Wide("wide", 3)
	if len(f.Items) != WideItems || f.Len() != 3 {
		t.Fatalf("%d items, %d results", len(f.Items), f.Len())
	}
	ids, questions, labels := map[string]bool{}, map[string]bool{}, map[string]int{}
	scripts := map[string]bool{}
	for i, it := range f.Items {
		question, _, _ := strings.Cut(it.ID, "-")
		ids[it.ID], questions[question] = true, true
		labels[it.Label]++
		if it.Index != i+1 {
			t.Fatalf("item %s has index %d", it.ID, it.Index)
		}
		for _, r := range it.Label {
			for name, table := range unicode.Scripts {
				if name != "Common" && name != "Inherited" && unicode.Is(table, r) {
					scripts[name] = true
				}
			}
		}
	}
	if len(ids) != WideItems || len(questions) != WideQuestions || labels["Comment"] != 60 || len(scripts) < 10 {
		t.Errorf("%d ids, %d questions, %d equal labels, %d scripts", len(ids), len(questions), labels["Comment"], len(scripts))
	}
	long := false
	for label := range labels {
		long = long || len(label) > 100
	}
	if !long {
		t.Error("no label is long")
	}
}
