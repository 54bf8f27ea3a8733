package extract_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

var epoch2026 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// numberedForm has results first, first+1, … A result's date rises with its
// id, but every seventh is half an hour late: the order of dates is another.
func numberedForm(first, n int) *formservice.Form { return lateForm(first, n, 30*time.Minute) }

func lateForm(first, n int, late time.Duration) *formservice.Form {
	results := make([]formservice.Result, n)
	for i := range results {
		finish := epoch2026.Add(time.Duration(i) * time.Minute)
		if i%7 == 3 {
			finish = finish.Add(late)
		}
		id := int64(first + i)
		results[i] = formservice.Result{
			ID:    id,
			Metas: []formservice.Meta{{ID: "date_finish", Value: finish.Format(extract.WireTime)}},
			Items: []formservice.Answer{{ID: "1", Values: []string{fmt.Sprint("value of ", id)}}},
		}
	}
	f := formservice.NewForm("f", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "One"}}, results)
	f.Metas = []string{"date_finish"}
	return f
}

// readWindow reads a window to its end and checks what holds for every page:
// ids ascend strictly within pages and across them, values are those of their
// results, and the headings are there.
func readWindow(t testing.TB, r *extract.Reader, w extract.Window, ids extract.IDRange, count int64) ([]int64, error) {
	t.Helper()
	wr := r.Window(w, ids, count)
	defer wr.Close()
	var got []int64
	last := int64(-1)
	headings := false
	for {
		p, err := wr.Next(t.Context())
		if err != nil {
			return got, err
		}
		if p == nil {
			if len(got) > 0 && !headings {
				t.Error("no page has headings")
			}
			return got, nil
		}
		headings = headings || len(p.Headings) > 0
		for i := range p.Len() {
			id := p.ID(i)
			if id <= last {
				t.Errorf("result %d comes after %d", id, last)
			}
			last = id
			got = append(got, id)
			for _, c := range p.Cells(i) {
				if f := p.Fields[c.Field]; f.Kind == page.KindItem && f.ID == "1" && c.Values == 1 {
					if v := string(p.Value(c, 0)); v != fmt.Sprint("value of ", id) && !strings.HasPrefix(v, "edited") && !strings.HasPrefix(v, "inserted") {
						t.Errorf("result %d has the value %q", id, v)
					}
				}
			}
		}
		p.Release()
	}
}

func sequence(first, n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(first + i)
	}
	return ids
}

// requestsFor is what a window of n results costs: a full page never ends one.
func requestsFor(n, perPage int) int { return n/perPage + 1 }

func TestReaderSizes(t *testing.T) {
	for _, first := range []int{1, 2, 1000} {
		for _, n := range []int{0, 1, 2, 99, 100, 101, 199, 200, 201, 1000} {
			server := &formservice.Server{Forms: []*formservice.Form{numberedForm(first, n)}}
			c := extracttest.Serve(t, server, nil)
			got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, int64(n))
			if err != nil || !slices.Equal(got, sequence(first, n)) {
				t.Errorf("%d results from %d: %d came, %v", n, first, len(got), err)
			}
			if asked := server.Counts()[formservice.TransactionResults]; asked != requestsFor(n, extract.PageSize) {
				t.Errorf("%d results: %d requests, want %d", n, asked, requestsFor(n, extract.PageSize))
			}
		}
	}
}

// hostileServices are the ways in which a service may differ from the
// specification and still be read.
func hostileServices() map[string]formservice.Faults {
	return map[string]formservice.Faults{
		"none":                     {},
		"pages of 50":              {PageCap: 50},
		"pages of 99":              {PageCap: 99},
		"pages of 1":               {PageCap: 1},
		"min id":                   {IgnoreMinID: true},
		"max id":                   {IgnoreMaxID: true},
		"both ids":                 {IgnoreMinID: true, IgnoreMaxID: true},
		"direction":                {IgnoreDirection: true},
		"direction, pages of 50":   {IgnoreDirection: true, PageCap: 50},
		"direction and min id":     {IgnoreDirection: true, IgnoreMinID: true},
		"direction and max id":     {IgnoreDirection: true, IgnoreMaxID: true},
		"direction and both ids":   {IgnoreDirection: true, IgnoreMinID: true, IgnoreMaxID: true},
		"page":                     {IgnorePage: true},
		"both ids, pages of 99":    {IgnoreMinID: true, IgnoreMaxID: true, PageCap: 99},
		"strict limit, headings":   {StrictLimit: true, Headings: "nested", OldRoot: true},
		"direction, faults":        {IgnoreDirection: true, Busy: 0.1, Cut: 0.1, Truncate: 0.05},
		"both ids, passing faults": {IgnoreMinID: true, IgnoreMaxID: true, HTML: 0.1, Reset: 0.1},
	}
}

// TestReaderOfHostileServices: each result once, in order, in every window and
// with every count; the second window profits from what the first has learnt.
func TestReaderOfHostileServices(t *testing.T) {
	for name, faults := range hostileServices() {
		t.Run(name, func(t *testing.T) {
			const first = 1
			for _, n := range []int{0, 1, 50, 99, 100, 101, 200, 255} {
				if faults.PageCap == 1 && n > 101 {
					continue
				}
				server := &formservice.Server{Forms: []*formservice.Form{numberedForm(first, n)}, Faults: faults}
				c := extracttest.Serve(t, server, func(cfg *v1.Config) { cfg.Retries = 20 })
				r := extract.NewReader(c, "f", extract.ResultsQuery{})
				for _, count := range []int64{int64(n), extract.Unknown} {
					got, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, count)
					if err != nil || !slices.Equal(got, sequence(first, n)) {
						t.Errorf("%d results, count %d: %d came, %v", n, count, len(got), err)
					}
				}
				if faults.IgnoreMinID || faults.IgnoreMaxID || n == 0 {
					continue
				}
				half := extract.IDRange{int64(first + n/4), int64(first + n/2)}
				got, err := readWindow(t, r, extract.Window{}, half, extract.Unknown)
				if err != nil || !slices.Equal(got, sequence(first+n/4, n/2-n/4+1)) {
					t.Errorf("%d results, ids %v: %v, %v", n, half, got, err)
				}
			}
		})
	}
}

// bareService serves n results whose ids begin at 0: the specification says
// that ids are numbers, not that they begin at 1.
func bareService(n int, descends bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		least, most := 0, n-1
		if v := r.URL.Query().Get("fs_min_id"); v != "" {
			_, _ = fmt.Sscan(v, &least)
		}
		if v := r.URL.Query().Get("fs_max_id"); v != "" {
			_, _ = fmt.Sscan(v, &most)
		}
		var b strings.Builder
		for i := range extract.PageSize {
			id := least + i
			if descends {
				id = min(most, n-1) - i
			}
			if id < least || id > min(most, n-1) {
				break
			}
			fmt.Fprintf(&b, `<result id="%d"/>`, id)
		}
		_, _ = w.Write([]byte(extracttest.Success(`<headings><heading for="1">One</heading></headings><results>` + b.String() + "</results>")))
	})
}

// TestReaderOfIDZero reaches the result 0 in both directions, though a bound
// of 0 is no bound.
func TestReaderOfIDZero(t *testing.T) {
	for _, descends := range []bool{false, true} {
		for _, n := range []int{0, 1, 2, 100, 101, 102, 201, 202} {
			for _, count := range []int64{int64(n), extract.Unknown} {
				c := extracttest.Serve(t, bareService(n, descends), nil)
				got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, count)
				if err != nil || !slices.Equal(got, sequence(0, n)) {
					t.Errorf("descends %v, %d results: %d came, %v", descends, n, len(got), err)
				}
			}
		}
	}
}

// TestReaderOfTheHighestID ends where no id can follow.
func TestReaderOfTheHighestID(t *testing.T) {
	asked := 0
	c := extracttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte(extracttest.Success(`<headings><heading for="1"/></headings><results><result id="9223372036854775807"/></results>`)))
	}), nil)
	got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, extract.Unknown)
	if err != nil || len(got) != 1 || asked != 1 {
		t.Errorf("%v, %v, %d requests", got, err, asked)
	}
}

// TestReaderSaysHowItReads names what was found out about the service.
func TestReaderSaysHowItReads(t *testing.T) {
	for _, tc := range []struct {
		faults formservice.Faults
		want   string
	}{
		{formservice.Faults{}, ""},
		{formservice.Faults{IgnoreMaxID: true}, ""},
		{formservice.Faults{IgnoreDirection: true}, "downwards"},
		{formservice.Faults{IgnoreMinID: true}, "fs_page"},
		{formservice.Faults{IgnoreDirection: true, IgnoreMaxID: true}, "fs_page"},
	} {
		c := extracttest.Serve(t, &formservice.Server{Forms: []*formservice.Form{numberedForm(1, 350)}, Faults: tc.faults}, nil)
		r := extract.NewReader(c, "f", extract.ResultsQuery{})
		if _, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, extract.Unknown); err != nil {
			t.Errorf("%s: %v", tc.faults, err)
		}
		if how := r.Downgraded(); (how == "") != (tc.want == "") || !strings.Contains(how, tc.want) {
			t.Errorf("%s: %q, want %q", tc.faults, how, tc.want)
		}
	}
}

// TestReaderCost counts requests where the service teaches something.
func TestReaderCost(t *testing.T) {
	for _, tc := range []struct {
		faults      formservice.Faults
		n           int
		count       int64
		first, next int // requests of the first window and of a second one
	}{
		{formservice.Faults{}, 37, 37, 1, 1},
		{formservice.Faults{}, 37, extract.Unknown, 2, 2}, // 37 may be the most that a page holds
		{formservice.Faults{}, 137, extract.Unknown, 2, 2},
		{formservice.Faults{}, 200, 200, 3, 3}, // a count may agree by chance
		{formservice.Faults{PageCap: 50}, 137, 137, 3, 3},
		{formservice.Faults{PageCap: 50}, 137, extract.Unknown, 3, 3},
		{formservice.Faults{PageCap: 50}, 150, 150, 3, 3},
		{formservice.Faults{PageCap: 50}, 150, extract.Unknown, 4, 4},
		{formservice.Faults{IgnoreDirection: true}, 250, 250, 3, 3},
		{formservice.Faults{IgnoreMinID: true}, 250, 250, 2 + 3, 3}, // two to find out
	} {
		server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, tc.n)}, Faults: tc.faults}
		c := extracttest.Serve(t, server, nil)
		r := extract.NewReader(c, "f", extract.ResultsQuery{})
		for i, want := range []int{tc.first, tc.next} {
			server.Reset()
			if _, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, tc.count); err != nil {
				t.Fatal(err)
			}
			if asked := len(server.Log()); asked != want {
				t.Errorf("%s, %d results, count %d, window %d: %d requests, want %d", tc.faults, tc.n, tc.count, i+1, asked, want)
			}
		}
	}
}

// TestReaderCannotReachTheRest of a service that ignores ids and pages alike:
// a clear error, no matter how long its pages are, and none where the first
// page is everything.
func TestReaderCannotReachTheRest(t *testing.T) {
	for _, capped := range []int{0, 50} {
		full := 100
		if capped > 0 {
			full = capped
		}
		for _, n := range []int{full - 1, full, full + 1, 2*full + 1} {
			faults := formservice.Faults{IgnoreMinID: true, IgnoreMaxID: true, IgnorePage: true, PageCap: capped}
			server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, n)}, Faults: faults}
			c := extracttest.Serve(t, server, nil)
			got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, extract.Unknown)
			if n <= full {
				if err != nil || len(got) != n {
					t.Errorf("pages of %d, %d results: %d came, %v", full, n, len(got), err)
				}
				continue
			}
			if e := extracttest.MustAs[*transport.AnswerError](t, err); !strings.Contains(e.Problem, fmt.Sprintf("counts %d results where %d came", n, full)) || !strings.Contains(err.Error(), "form f, page 2: ") {
				t.Errorf("pages of %d, %d results: %v", full, n, err)
			}
			if len(got) != 0 {
				t.Errorf("%d results were given before the error", len(got))
			}
			if asked := len(server.Log()); asked > 6 {
				t.Errorf("%d requests", asked)
			}
		}
	}
}

// TestReaderWhereTheLastPageRepeats: some services give the last page for any
// page beyond it. That is an end, not an error.
func TestReaderWhereTheLastPageRepeats(t *testing.T) {
	for _, n := range []int{100, 150, 200} {
		server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, n)}, Faults: formservice.Faults{IgnoreMinID: true, IgnoreMaxID: true}}
		last := max(1, (n+99)/100)
		c := extracttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for page := last + 1; page < last+5; page++ {
				r.URL.RawQuery = strings.Replace(r.URL.RawQuery, fmt.Sprintf("fs_page=%d", page), fmt.Sprintf("fs_page=%d", last), 1)
			}
			server.ServeHTTP(w, r)
		}), nil)
		got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, extract.Unknown)
		if err != nil || !slices.Equal(got, sequence(1, n)) {
			t.Errorf("%d results: %d came, %v", n, len(got), err)
		}
	}
}

// sortedBy lets a service sort by a column, whatever is asked for.
func sortedBy(column string, server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/results") {
			r.URL.RawQuery += "&fs_sort=" + column
		}
		server.ServeHTTP(w, r)
	})
}

// TestReaderOfADateSortedService falls back to pages by number and sorts.
func TestReaderOfADateSortedService(t *testing.T) {
	for _, faults := range []formservice.Faults{{}, {IgnoreDirection: true}, {PageCap: 50}} {
		for _, n := range []int{0, 1, 20, 100, 450} {
			c := extracttest.Serve(t, sortedBy("date_finish", &formservice.Server{Forms: []*formservice.Form{numberedForm(1, n)}, Faults: faults}), nil)
			r := extract.NewReader(c, "f", extract.ResultsQuery{})
			for range 2 {
				got, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, int64(n))
				if err != nil || !slices.Equal(got, sequence(1, n)) {
					t.Errorf("%s, %d results: %d came, %v", faults, n, len(got), err)
				}
			}
		}
	}
}

// TestReaderOfOrdersByChance: the first pages of a service that sorts by date
// ascend by id too. The window fails when that ends, and can be read again.
func TestReaderOfOrdersByChance(t *testing.T) {
	c := extracttest.Serve(t, sortedBy("date_finish", &formservice.Server{Forms: []*formservice.Form{lateForm(1, 450, 48*time.Hour)}}), nil)
	r := extract.NewReader(c, "f", extract.ResultsQuery{})
	got, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, 450)
	if e := extracttest.MustAs[*extract.OrderError](t, err); e.After == 0 || len(got) == 0 {
		t.Errorf("%d came, %v", len(got), err)
	}
	if _, ok := errors.AsType[*transport.AnswerError](err); !ok {
		t.Errorf("%v is no *AnswerError: the exit code is that of bad data", err)
	}
	if got, err = readWindow(t, r, extract.Window{}, extract.IDRange{}, extract.Unknown); err != nil || !slices.Equal(got, sequence(1, 450)) {
		t.Errorf("read again: %d came, %v", len(got), err)
	}
}

// TestReaderRequiresOrder: where the order is required, the first page in order is
// given at once, and the reading fails at the first page that breaks it.
func TestReaderRequiresOrder(t *testing.T) {
	for name, c := range map[string]struct {
		server http.Handler
		pages  int // given before the error; all pages if there is none
		fails  bool
	}{
		"kept":             {&formservice.Server{Forms: []*formservice.Form{numberedForm(1, 450)}}, 5, false},
		"by dates":         {sortedBy("date_finish", &formservice.Server{Forms: []*formservice.Form{numberedForm(1, 450)}}), 0, true},
		"by chance":        {sortedBy("date_finish", &formservice.Server{Forms: []*formservice.Form{lateForm(1, 450, 48*time.Hour)}}), 0, true},
		"downwards":        {&formservice.Server{Forms: []*formservice.Form{numberedForm(1, 450)}, Faults: formservice.Faults{IgnoreDirection: true}}, 0, true},
		"without id bound": {&formservice.Server{Forms: []*formservice.Form{numberedForm(1, 450)}, Faults: formservice.Faults{IgnoreMinID: true}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := extract.NewReader(extracttest.Serve(t, c.server, nil), "f", extract.ResultsQuery{})
			r.RequireOrder(true)
			w := r.Window(extract.Window{}, extract.IDRange{}, extract.Unknown)
			defer w.Close()
			for given := 0; ; given++ {
				p, err := w.Next(t.Context())
				if p == nil {
					if _, broken := errors.AsType[*extract.PagingError](err); broken != c.fails || given < c.pages {
						t.Errorf("%d pages, then %v", given, err)
					}
					return
				}
				if !w.Ascending() {
					t.Error("the page does not show the order")
				}
				p.Release()
			}
		})
	}
}

// TestReaderLosesTheOrderLate: a service that kept the order and then does
// not cannot be read on where pages were given; the error says so.
func TestReaderLosesTheOrderLate(t *testing.T) {
	asked := 0
	server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, 1000)}, Before: func(formservice.Request) { asked++ }}
	shuffle := sortedBy("1", server)
	c := extracttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked >= 3 {
			shuffle.ServeHTTP(w, r)
			return
		}
		server.ServeHTTP(w, r)
	}), nil)
	r := extract.NewReader(c, "f", extract.ResultsQuery{})
	_, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, extract.Unknown)
	if e := extracttest.MustAs[*transport.AnswerError](t, err); !strings.Contains(e.Problem, "do not follow result 300") || !strings.Contains(err.Error(), "page 4") {
		t.Errorf("err = %v", err)
	}
	// The next window begins with nothing given, and can be read.
	if got, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, extract.Unknown); err != nil || !slices.Equal(got, sequence(1, 1000)) {
		t.Errorf("%d came, %v", len(got), err)
	}
}

// TestReaderWindows bounds dates: each result lies in the window of its date.
func TestReaderWindows(t *testing.T) {
	form := numberedForm(1, 5000)
	c := extracttest.Serve(t, &formservice.Server{Forms: []*formservice.Form{form}}, nil)
	r := extract.NewReader(c, "f", extract.ResultsQuery{})
	seen := map[int64]bool{}
	for _, w := range extract.UnitDay.Cut(epoch2026, epoch2026.AddDate(0, 0, 8)) {
		got, err := readWindow(t, r, w, extract.IDRange{}, extract.Unknown)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range got {
			result, _ := form.Get(id)
			date, _ := result.Meta("date_finish")
			if finish := extracttest.Wall(date); seen[id] || finish.Before(w.From) || !finish.Before(w.To) {
				t.Errorf("result %d of %s in window %s", id, date, w)
			}
			seen[id] = true
		}
	}
	if len(seen) != 5000 {
		t.Errorf("%d results came", len(seen))
	}
}

// TestReaderShared reads windows side by side with one Reader, on services
// that all of them find out about at once.
func TestReaderShared(t *testing.T) {
	for _, name := range []string{"none", "direction", "min id", "pages of 50", "both ids, passing faults"} {
		t.Run(name, func(t *testing.T) {
			server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, 2500)}, Faults: hostileServices()[name]}
			c := extracttest.Serve(t, server, func(cfg *v1.Config) { cfg.Concurrency = 8; cfg.Retries = 20 })
			r := extract.NewReader(c, "f", extract.ResultsQuery{})
			var mu sync.Mutex
			seen := map[int64]int{}
			var group sync.WaitGroup
			for _, w := range extract.UnitDay.Cut(epoch2026, epoch2026.AddDate(0, 0, 5)) {
				group.Go(func() {
					got, err := readWindow(t, r, w, extract.IDRange{}, extract.Unknown)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, id := range got {
						seen[id]++
					}
				})
			}
			group.Wait()
			for _, id := range sequence(1, 2500) {
				if seen[id] != 1 {
					t.Fatalf("result %d came %d times", id, seen[id])
				}
			}
			if server.Peak() > 8 {
				t.Errorf("%d requests at once", server.Peak())
			}
		})
	}
}

// TestReaderOfALivingForm: results that are there throughout come once, what
// is deleted, inserted and edited meanwhile may come once.
func TestReaderOfALivingForm(t *testing.T) {
	for name, faults := range map[string]formservice.Faults{
		"deletes":   {DeleteEvery: 2},
		"inserts":   {InsertEvery: 1},
		"edits":     {EditEvery: 1},
		"all":       {DeleteEvery: 2, InsertEvery: 1, EditEvery: 3},
		"downwards": {DeleteEvery: 2, InsertEvery: 2, IgnoreDirection: true},
		"capped":    {DeleteEvery: 1, InsertEvery: 2, PageCap: 50},
		// By page numbers a deletion moves results over to a page that was read:
		// only what is inserted can be told there.
		"numbered": {InsertEvery: 1, IgnoreMinID: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				faults.Seed = seed
				form := numberedForm(1, 3000)
				c := extracttest.Serve(t, &formservice.Server{Forms: []*formservice.Form{form}, Faults: faults}, nil)
				got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, 3000)
				if err != nil {
					t.Fatal(err)
				}
				came := map[int64]bool{}
				for _, id := range got {
					if came[id] {
						t.Errorf("result %d came twice", id)
					}
					came[id] = true
				}
				gone := map[int64]bool{}
				for _, ch := range form.Changes() {
					if ch.Kind == formservice.Deleted {
						gone[ch.Before.ID] = true
					}
				}
				for _, id := range sequence(1, 3000) {
					if !gone[id] && !came[id] {
						t.Errorf("result %d was there throughout and did not come", id)
					}
				}
				if len(form.Changes()) == 0 {
					t.Error("nothing changed")
				}
			}
		})
	}
}

// TestReaderErrors name the window and the page, and Close is harmless.
func TestReaderErrors(t *testing.T) {
	server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, 500)}, Decide: func(r formservice.Request) formservice.Fault {
		if r.Number > 1 {
			return formservice.FaultHTML
		}
		return formservice.NoFault
	}}
	c := extracttest.Serve(t, server, func(cfg *v1.Config) { cfg.Retries = 1 })
	wr := extract.NewReader(c, "f", extract.ResultsQuery{}).Window(extracttest.Window("2026-01-01", "2026-02-01"), extract.IDRange{}, extract.Unknown)
	_, err := wr.Next(t.Context())
	if err == nil || !strings.Contains(err.Error(), "window 2026-01-01 00:00:00/2026-02-01 00:00:00, page 2: Get Results of form f") {
		t.Errorf("err = %v", err)
	}
	wr.Close()
	wr.Close()
	if p, err := wr.Next(t.Context()); p != nil || err != nil {
		t.Errorf("after Close: %v, %v", p, err)
	}
}
