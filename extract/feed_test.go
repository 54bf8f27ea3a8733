package extract_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

// feedWorld is a form whose service stamps changes, one a minute.
type feedWorld struct {
	*formservice.Form
	service *formservice.Server
	client  *v1.Client
	clock   time.Time
	step    time.Duration
}

// newFeedWorld holds n results. Their addresses vary, and do not follow the ids.
func newFeedWorld(t *testing.T, n int) *feedWorld {
	t.Helper()
	w := &feedWorld{Form: formservice.NewForm("form1", nil, nil), clock: extracttest.Wall("2026-03-01"), step: time.Minute}
	w.SetClock(func() time.Time {
		w.clock = w.clock.Add(w.step)
		return w.clock
	})
	for id := range int64(n) {
		if _, err := w.Insert(formservice.Result{ID: id + 1, Metas: []formservice.Meta{
			{ID: "date_finish", Value: w.clock.Format(formservice.WallTime)}, {ID: "user_ip", Value: fmt.Sprintf("198.51.100.%d", id*7%97)},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	w.service = &formservice.Server{Forms: []*formservice.Form{w.Form}}
	w.client = extracttest.Serve(t, w.service, nil)
	return w
}

// edit changes results.
func (w *feedWorld) edit(t *testing.T, ids ...int64) {
	t.Helper()
	for _, id := range ids {
		r, _ := w.Get(id)
		if err := w.Update(r); err != nil {
			t.Error(err)
		}
	}
}

// read reads the feed back to a time.
func (w *feedWorld) read(t *testing.T, since time.Time) (*extract.Feed, error) {
	t.Helper()
	w.service.Reset()
	return extract.ReadFeed(t.Context(), w.client, "form1", extract.ResultsQuery{}, func(time.Time) time.Time { return since })
}

// check compares a feed with the result that changed first.
func (w *feedWorld) check(t *testing.T, feed *extract.Feed) error {
	t.Helper()
	oldest, err := extract.OldestChange(t.Context(), w.client, "form1")
	if err != nil {
		return err
	}
	return feed.Check(oldest)
}

// changedSince lists the results whose last change is not before a time, newest first.
func (w *feedWorld) changedSince(since time.Time) (ids []int64) {
	var all []formservice.Result
	w.Each(func(r formservice.Result) bool {
		all = append(all, r.Clone())
		return true
	})
	at := func(r formservice.Result) string { v, _ := r.Meta("date_update"); return v }
	slices.SortStableFunc(all, func(a, b formservice.Result) int { return strings.Compare(at(b), at(a)) })
	for _, r := range all {
		if at(r) >= since.Format(formservice.WallTime) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// TestFeed: the feed names all that changed since a time, over one page or many.
func TestFeed(t *testing.T) {
	for _, c := range []struct{ results, edits, requests int }{
		{1, 1, 2},
		{2, 2, 2},
		{3, 3, 2},
		{40, 5, 1},
		{40, 40, 2}, // whether a short page is the last, the next one shows
		{500, 5, 1},
		{500, 99, 1},
		{500, 100, 3}, // two pages, and a look at what changed meanwhile
		{500, 450, 7},
		{3000, 1400, 19},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := newFeedWorld(t, c.results)
			since := w.clock.Add(time.Second)
			for i := range c.edits {
				w.edit(t, int64(i*7%c.results+1))
			}
			feed, err := w.read(t, since)
			if err != nil {
				t.Fatal(err)
			}
			var ids []int64
			for _, change := range feed.Changes {
				if !change.At.Before(since) {
					ids = append(ids, change.ID)
				}
			}
			if want := w.changedSince(since); !slices.Equal(ids, want) {
				t.Errorf("got %v, want %v", ids, want)
			}
			if n := len(w.service.Log()); n > c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			if proves := c.edits > 1 && c.edits < c.results; proves && !feed.Apart {
				t.Error("the order is no proof")
			}
		})
	}
}

// TestFollowing: the next page of the feed begins within the rows that are known, reaches
// beyond them, and begins where a page of its limit does.
func TestFollowing(t *testing.T) {
	for size := 1; size <= 120; size++ {
		for known := size; known <= 400; known++ {
			limit, number := extract.Following(known, size)
			if limit == 0 && size < extract.LeastFeedPage {
				continue
			}
			start, end := (number-1)*limit, number*limit
			if limit > size || start < 0 || start >= known || end <= known {
				t.Errorf("%d of pages of %d are known: page %d of %d follows, rows %d to %d", known, size, number, limit, start, end)
			}
		}
	}
	for _, size := range []int{100, 500} { // twenty full pages bring nearly as many rows
		known := size
		for range 19 {
			limit, number := extract.Following(known, size)
			known = number * limit
		}
		if known < 17*size {
			t.Errorf("twenty pages of %d bring %d rows", size, known)
		}
	}
}

// TestFeedOfOtherServices: pages are cut, or fail if they are long. The feed names all that
// changed, or says that it does not.
func TestFeedOfOtherServices(t *testing.T) {
	for _, tc := range []struct {
		faults  formservice.Faults
		results int
		edits   int
		want    string // of the error
	}{
		{"cut-pages=90", 500, 300, ""},
		{"cut-pages=30", 500, 300, ""},
		{"cut-pages=7", 500, 60, ""},
		{"cut-pages=7", 40, 40, ""},
		{"cut-pages=4", 500, 40, "only 4 results on a page"},
		{"cut-pages=3", 500, 40, "only 3 results on a page"},
		{"cut-pages=2", 500, 40, "kept changing while"},
		{"cut-pages=1", 500, 40, "kept changing while"},
		{"cut-pages=2", 2, 2, ""},
		{"cut-pages=3", 3, 3, ""},
		{"page-cap=37", 500, 300, ""},
		{"page-504=50", 500, 300, ""},
		{"page-504=10", 500, 40, ""},
		{"page-504=6", 500, 40, "fails when it is asked"},
	} {
		for _, generation := range generations {
			t.Run(fmt.Sprint(tc.faults, " ", tc.edits, " of ", tc.results, " ", generation), func(t *testing.T) {
				w := newFeedWorld(t, tc.results)
				since := w.clock.Add(time.Second)
				for i := range tc.edits {
					w.edit(t, int64(i*7%tc.results+1))
				}
				server, c := serve(t, generation, tc.faults, w.Form)
				feed, err := extract.ReadFeed(t.Context(), c, "form1", extract.ResultsQuery{}, func(time.Time) time.Time { return since })
				if asked := pagesAsked(server); asked > 90 {
					t.Errorf("%d requests", asked)
				}
				if tc.want != "" {
					if failed, ok := errors.AsType[*extract.FeedError](err); !ok || !strings.Contains(failed.Problem, tc.want) || !failed.Sorts {
						t.Errorf("err = %v, want %q", err, tc.want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				var ids []int64
				for _, change := range feed.Changes {
					if !change.At.Before(since) {
						ids = append(ids, change.ID)
					}
				}
				if want := w.changedSince(since); !slices.Equal(ids, want) {
					t.Errorf("got %d, want %d: %v", len(ids), len(want), ids)
				}
			})
		}
	}
}

// TestFeedWithOneUnserved: the feed gives up where one result cannot be served, so that
// reading the results names it. In an outage the error is that of the request.
func TestFeedWithOneUnserved(t *testing.T) {
	for _, generation := range generations {
		w := newFeedWorld(t, 400)
		w.service.API = formservice.Both
		c := extracttest.ServeBy(t, generation, unserved(w.service, 390, tooHeavy["504"]), func(cfg *transport.Config) { cfg.Retries = 2 })
		_, err := extract.ReadFeed(t.Context(), c, "form1", extract.ResultsQuery{}, func(newest time.Time) time.Time { return newest.Add(-time.Hour) })
		if failed, ok := errors.AsType[*extract.FeedError](err); !ok || !failed.Sorts || !strings.Contains(failed.Problem, "fails when it is asked") {
			t.Errorf("%s: %v", generation, err)
		}
		c = extracttest.ServeBy(t, generation, unserved(w.service, 1, tooHeavy["504"]), func(cfg *transport.Config) { cfg.Retries = 2 })
		if _, err := extract.OldestChange(t.Context(), c, "form1"); !is[*extract.FeedError](err) {
			t.Errorf("%s: %v", generation, err)
		}
		w.service.SetFaults("page-504=30")
		if witness, err := extract.FindWitness(t.Context(), c, "form1"); err != nil || witness == "" {
			t.Errorf("%s: the witness is %q, %v", generation, witness, err)
		}
		w.service.SetFaults("html=1,html-status=504")
		for what, ask := range map[string]func() error{
			"feed": func() error {
				_, err := extract.ReadFeed(t.Context(), c, "form1", extract.ResultsQuery{}, func(time.Time) time.Time { return time.Time{} })
				return err
			},
			"witness": func() error { _, err := extract.FindWitness(t.Context(), c, "form1"); return err },
			"oldest":  func() error { _, err := extract.OldestChange(t.Context(), c, "form1"); return err },
		} {
			w.service.Reset()
			if err := ask(); !transport.Temporary(err) || is[*extract.FeedError](err) {
				t.Errorf("%s, %s in an outage: %v", generation, what, err)
			}
			if n := len(w.service.Log()); n > 25 {
				t.Errorf("%s, %s in an outage: %d requests", generation, what, n)
			}
		}
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// TestFeedThatShifts changes results between two pages of the feed: what it names
// is whole, or it says that it is not.
func TestFeedThatShifts(t *testing.T) {
	for name, do := range map[string]func(*feedWorld){
		"an edit below":         func(w *feedWorld) { w.edit(t, 10) },
		"an edit above":         func(w *feedWorld) { w.edit(t, 495) },
		"an edit of the seam":   func(w *feedWorld) { w.edit(t, 401) },
		"a deletion above":      func(w *feedWorld) { w.Delete(495) },
		"a deletion below":      func(w *feedWorld) { w.Delete(300) },
		"a deletion of a seam":  func(w *feedWorld) { w.Delete(401) },
		"a deletion, an edit":   func(w *feedWorld) { w.Delete(490); w.edit(t, 20) },
		"two edits, a deletion": func(w *feedWorld) { w.edit(t, 250, 251); w.Delete(491) },
		"an insertion": func(w *feedWorld) {
			_, _ = w.Insert(formservice.Result{ID: 900})
		},
	} {
		for page := 2; page <= 4; page++ {
			t.Run(fmt.Sprint(name, " before page ", page), func(t *testing.T) {
				w := newFeedWorld(t, 500)
				since := w.clock.Add(-250 * time.Minute)
				n := 0
				w.service.Before = func(formservice.Request) {
					if n++; n == page {
						do(w)
					}
				}
				feed, err := w.read(t, since)
				if err != nil {
					t.Fatal(err)
				}
				named := map[int64]bool{}
				for _, change := range feed.Changes {
					named[change.ID] = true
				}
				for _, id := range w.changedSince(since) {
					if !named[id] {
						t.Errorf("result %d changed, and is not named", id)
					}
				}
			})
		}
	}
}

// TestFeedOfNoUse: services and changes that the feed cannot tell.
func TestFeedOfNoUse(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults formservice.Faults
		do     func(*feedWorld)
		want   string
		sorts  bool
	}{
		{"the order is ignored", "ignore-sort", func(w *feedWorld) { w.edit(t, 2950) }, "does not sort", false},
		{"the direction is ignored", "ignore-direction", func(w *feedWorld) {}, "or not in the direction", false},
		{"a result lacks the meta", "lack-update=5", func(w *feedWorld) {}, "has no date_update, or one", false},
		{"all results lack it", "lack-update=1", func(w *feedWorld) {}, "has no date_update, or one", false},
		{"one second fills a page", "", func(w *feedWorld) {
			w.step = 0
			for id := range int64(150) {
				w.edit(t, id+1)
			}
		}, "within one second", true},
		{"one second fills a later page", "", func(w *feedWorld) {
			w.step = 0
			for id := range int64(150) {
				w.edit(t, id+1)
			}
			w.step = time.Minute
			for id := range int64(50) {
				w.edit(t, id+1000)
			}
		}, "within one second", true},
		{"too many changes", "", func(w *feedWorld) {
			for id := range int64(3000) {
				w.edit(t, id+1)
			}
		}, "results changed", true},
		{"each page loses a row", "", func(w *feedWorld) {
			id := int64(2990)
			w.service.Before = func(formservice.Request) {
				w.Delete(id)
				id--
			}
		}, "kept changing while", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFeedWorld(t, 3000)
			w.service.SetFaults(c.faults)
			since := w.clock.Add(-150 * time.Minute)
			c.do(w)
			feed, err := w.read(t, since)
			if err == nil {
				err = w.check(t, feed)
			}
			var failed *extract.FeedError
			if !errors.As(err, &failed) || !strings.Contains(failed.Problem, c.want) || failed.Sorts != c.sorts {
				t.Errorf("got %+v, want %q", err, c.want)
			}
		})
	}
}

// TestWitness: an order by a meta that varies proves that the service sorts.
func TestWitness(t *testing.T) {
	w := newFeedWorld(t, 300)
	feed, err := w.read(t, w.clock)
	if err != nil || feed.Apart {
		t.Errorf("the order of ids is taken for a proof: %v", err)
	}
	for _, c := range []struct {
		faults formservice.Faults
		want   string
	}{
		{"", "user_ip"},
		{"ignore-sort", ""},
	} {
		w.service.SetFaults(c.faults)
		if got, err := extract.FindWitness(t.Context(), w.client, "form1"); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.faults, got, err, c.want)
		}
	}
}
