package formservice

import (
	"slices"
	"testing"
	"time"
)

func TestNewForm(t *testing.T) {
	f := NewForm("f", nil, []Result{{}, {ID: 9}, {}, {ID: 9, Metas: []Meta{{"x", "second"}}}, {ID: 4}})
	equalIDs(t, "ids", idsOf(collect(f)), 1, 4, 9, 10)
	if r, ok := f.Get(9); !ok || len(r.Metas) != 0 {
		t.Errorf("result 9 is %+v", r)
	}
	if len(f.Changes()) != 0 {
		t.Error("results of the beginning are no changes")
	}
	if !f.hasColumn("x") == false {
		t.Error("a result that was left out names a column")
	}
}

func TestChanges(t *testing.T) {
	for name, f := range map[string]*Form{
		"held":      NewForm("f", nil, []Result{finished(1, "2026-01-01 00:00:00"), {ID: 2}, finished(3, "2026-01-03 00:00:00")}),
		"generated": Generate(GenerateOptions{Results: 3, Even: true}),
	} {
		t.Run(name, func(t *testing.T) { checkChanges(t, f) })
	}
}

func checkChanges(t *testing.T, f *Form) {
	ids := idsOf(collect(f))
	first, last := ids[0], ids[2]
	id, err := f.Insert(Result{Items: []Answer{{ID: "new", Values: []string{"x"}}}})
	if err != nil || id != last+1 {
		t.Fatalf("insert: %d, %v", id, err)
	}
	if _, err := f.Insert(Result{ID: first}); err == nil {
		t.Error("an id was given twice")
	}
	if err := f.Update(Result{ID: 999}); err == nil {
		t.Error("a result that does not exist was updated")
	}
	if err := f.Finish(999, time.Time{}); err == nil {
		t.Error("a result that does not exist was finished")
	}
	if f.Delete(999) {
		t.Error("a result that does not exist was deleted")
	}
	if err := f.Finish(first, date("2026-06-01")); err != nil {
		t.Fatal(err)
	}
	if r, _ := f.Get(first); newRecord(r).date != date("2026-06-01").Unix() {
		t.Errorf("finished as %+v", r)
	}
	if !f.Delete(first) || f.Delete(first) || !f.Delete(id) {
		t.Error("delete")
	}
	if again, _ := f.Insert(Result{}); again != id+1 {
		t.Errorf("the id %d was given again", again)
	}
	equalIDs(t, "left", idsOf(collect(f)), ids[1], last, id+1)
	if f.Len() != 3 {
		t.Errorf("%d results, want 3", f.Len())
	}
	changes := f.Changes()
	before, after := make([]int64, len(changes)), make([]int64, len(changes))
	for i, c := range changes {
		before[i], after[i] = c.Before.ID, c.After.ID
	}
	equalIDs(t, "before", before, 0, first, first, id, 0)
	equalIDs(t, "after", after, id, first, 0, 0, id+1)
	if !f.hasColumn("new") {
		t.Error("the column of an inserted result is unknown")
	}
}

// TestResultsAreCopies checks that nobody changes a form behind its back.
func TestResultsAreCopies(t *testing.T) {
	given := finished(1, "2026-01-01 00:00:00", Answer{ID: "1", Values: []string{"a"}})
	f := NewForm("f", nil, []Result{given})
	given.Items[0].Values[0] = "b"
	got, _ := f.Get(1)
	got.Items[0].Values[0], got.Metas[0].Value = "c", "c"
	f.Each(func(r Result) bool { r.Items[0].Values[0] = "d"; return true })
	if r, _ := f.Get(1); r.Items[0].Values[0] != "a" || r.Metas[0].Value != "Complete" {
		t.Errorf("the form now holds %+v", r)
	}
}

// TestDisturb lets the service change its forms between requests.
func TestDisturb(t *testing.T) {
	for name, make := range map[string]func() *Form{
		"held":      smallForm,
		"generated": func() *Form { return Generate(GenerateOptions{Results: 500}) },
	} {
		t.Run(name, func(t *testing.T) {
			run := func() []Change {
				f := make()
				if f.Clock != nil {
					f.Clock = fixedClock("2026-03-01 12:00:00")
				}
				s := startService(t, &Server{
					Forms: []*Form{f}, Faults: "seed=3,insert-every=1,edit-every=2,delete-every=3",
				})
				n := f.Len()
				for range 12 {
					s.count(t, "")
					s.send(t, "GET", "/api/users/acme/forms", "") // changes nothing
				}
				if got := f.Len(); got != n+12-4 {
					t.Errorf("%d results, want %d", got, n+8)
				}
				return f.Changes()
			}
			a, b := run(), run()
			same := slices.EqualFunc(a, b, func(x, y Change) bool {
				return same(x.Before, y.Before) && same(x.After, y.After)
			})
			if !same {
				t.Error("equal requests make different changes")
			}
			edited := 0
			for _, c := range a {
				if c.Before.ID != 0 && c.After.ID != 0 && c.After.column(metaUpdate)[0] != "" {
					edited++
				}
			}
			if edited < 6 {
				t.Errorf("%d edited in %d changes", edited, len(a))
			}
		})
	}
}

// TestEmptyForms checks that nothing trips over a form without results.
func TestEmptyForms(t *testing.T) {
	for name, f := range map[string]*Form{"zero": {}, "held": NewForm("f", nil, nil), "generated": Generate(GenerateOptions{})} {
		if f.Len() != 0 || len(collect(f)) != 0 || f.Delete(1) {
			t.Errorf("%s: %d results", name, f.Len())
		}
		f.editAny(1)
		f.deleteAny(2)
		f.insertAny(3)
		if f.Len() != 1 {
			t.Errorf("%s: %d results after one was inserted", name, f.Len())
		}
		dated := newResultsQuery()
		dated.dated = true
		if f.count(&dated) != 1 {
			t.Errorf("%s: the inserted result has no date", name)
		}
	}
}
