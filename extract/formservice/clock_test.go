package formservice

import (
	"testing"
	"time"
)

// fixedClock stands still.
func fixedClock(at string) func() time.Time {
	t, err := time.Parse(WallTime, at)
	if err != nil {
		panic(err)
	}
	return func() time.Time { return t.Add(999 * time.Millisecond) }
}

// updates returns the date_update of the results of a query, by id. A result
// without the meta is missing.
func (s service) updates(t *testing.T, query string) map[int64]string {
	t.Helper()
	found := map[int64]string{}
	for _, r := range s.get(t, "results", query).results(t) {
		if v, ok := r.Meta(metaUpdate); ok {
			found[r.ID] = v
		}
	}
	return found
}

// TestStamps changes results in every way under a clock, and asks the service
// what it shows of them.
func TestStamps(t *testing.T) {
	const now, feed = "2030-05-06 07:08:09", "fs_sort=date_update&fs_limit=5"
	for name, make := range map[string]func() *Form{
		"held":      smallForm,
		"generated": func() *Form { return Generate(GenerateOptions{Results: 500}) },
	} {
		t.Run(name, func(t *testing.T) {
			f := make()
			s := startService(t, &Server{Forms: []*Form{f}})
			f.SetClock(fixedClock(now))
			ids := idsOf(collect(f))
			inserted, err := f.Insert(Result{Metas: []Meta{{metaUpdate, "2031-01-01 00:00:00"}}})
			if err != nil {
				t.Fatal(err)
			}
			edited, _ := f.Get(ids[0])
			edited.Items[0].Values = []string{"edited"}
			moved, _ := f.Get(ids[1])
			moved.SetMeta(metaFinish, "2025-02-03 04:05:06")
			for _, r := range []Result{edited, moved} {
				if err := f.Update(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Finish(ids[2], date("2025-06-07")); err != nil {
				t.Fatal(err)
			}
			f.Delete(ids[3])
			for _, id := range []int64{inserted, ids[2], ids[1], ids[0]} {
				if r, _ := f.Get(id); r.column(metaUpdate)[0] != now {
					t.Errorf("result %d: %+v", id, r.Metas)
				}
			}
			equalIDs(t, "the feed", s.ids(t, feed)[:4], inserted, ids[2], ids[1], ids[0])
			if seen := s.updates(t, feed); seen[edited.ID] != now {
				t.Errorf("shown: %v", seen)
			}
		})
	}
}

// TestWithoutClock checks that a form given by a test keeps what it is given,
// and that its column is known only where a result or a clock has it.
func TestWithoutClock(t *testing.T) {
	f := smallForm()
	s := startService(t, &Server{Forms: []*Form{f}})
	if err := f.Finish(21, date("2026-02-01")); err != nil {
		t.Fatal(err)
	}
	if seen := s.updates(t, ""); len(seen) != 0 {
		t.Errorf("shown: %v", seen)
	}
	if code := s.get(t, "results", "fs_sort=date_update").code(t); code != 2 {
		t.Errorf("error %d, want 2", code)
	}
	f.SetClock(fixedClock("2026-03-01 00:00:00"))
	equalIDs(t, "all are empty", s.ids(t, "fs_sort=date_update&fs_limit=3"), 22, 21, 20)
	f.SetClock(nil)
	f.editAny(1) // changes of the service's own are stamped all the same
	if seen := s.updates(t, ""); len(seen) != 1 {
		t.Errorf("shown: %v", seen)
	}
}
