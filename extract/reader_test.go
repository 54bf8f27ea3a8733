package extract_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load/loadtest/needs"
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

// generations are those that a reader reads by. Every test service speaks both.
var generations = []string{formservice.V1, formservice.V2}

// serve serves forms by one generation of the interface.
func serve(t testing.TB, generation string, faults formservice.Faults, forms ...*formservice.Form) (*formservice.Server, extract.Client) {
	t.Helper()
	server := &formservice.Server{Forms: forms, Faults: faults, API: formservice.Both}
	return server, extracttest.ServeBy(t, generation, server, func(cfg *transport.Config) { cfg.Retries = 20 })
}

// pagesAsked returns how many pages a service was asked for.
func pagesAsked(server *formservice.Server) int {
	return server.Counts()[formservice.TransactionResults]
}

// readWindow reads a window to its end and checks what holds for every page:
// ids ascend strictly within pages and across them, values are those of their
// results, and the headings are there.
func readWindow(t testing.TB, r *extract.Reader, w extract.Window, ids extract.IDRange, count int64) ([]int64, error) {
	t.Helper()
	return readPages(t, r.Window(w, ids, count))
}

func readPages(t testing.TB, wr *extract.WindowReader) ([]int64, error) {
	t.Helper()
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

// lawfulServices are ways in which services differ from each other, and faults that pass.
func lawfulServices() map[string]formservice.Faults {
	return map[string]formservice.Faults{
		"none":             "",
		"pages of 50":      "page-cap=50",
		"pages of 99":      "page-cap=99",
		"pages of 1":       "page-cap=1",
		"pages cut to 70":  "cut-pages=70,v2-pagination=missing",
		"no page numbers":  "ignore-page",
		"a row twice":      "twice-once=7",
		"headers missing":  "v2-pagination=missing",
		"numbers as ids":   "v2-number-ids,v2-fractions=random",
		"nested headings":  "headings=nested,old-root",
		"faults that pass": "busy=0.1,cut=0.1,truncate=0.05,html=0.1,reset=0.1",
	}
}

// TestReaderOfLawfulServices: each result once, in order, in every window and with every count.
func TestReaderOfLawfulServices(t *testing.T) {
	for name, faults := range lawfulServices() {
		t.Run(name, func(t *testing.T) {
			for _, generation := range generations {
				for _, n := range []int{0, 1, 50, 99, 100, 255, 500, 501} {
					if faults == "page-cap=1" && n > 100 {
						continue
					}
					_, c := serve(t, generation, faults, numberedForm(1, n))
					r := extract.NewReader(c, "f", extract.ResultsQuery{})
					for _, count := range []int64{int64(n), extract.Unknown} {
						got, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, count)
						if err != nil || !slices.Equal(got, sequence(1, n)) {
							t.Errorf("%s, %d results, count %d: %d came, %v", generation, n, count, len(got), err)
						}
					}
					half := extract.IDRange{Min: int64(1 + n/4), Max: int64(1 + n/2)}
					got, err := readWindow(t, r, extract.Window{}, half, extract.Unknown)
					if err != nil || !slices.Equal(got, sequence(1+n/4, min(n, n/2+1)-n/4)) {
						t.Errorf("%s, %d results, ids %v: %v, %v", generation, n, half, got, err)
					}
				}
			}
		})
	}
}

// TestReaderNamesWhatIsIgnored of a service that breaks its specification. It asks for the
// page once more and gives no page that is not in order.
func TestReaderNamesWhatIsIgnored(t *testing.T) {
	const lower, upper, order = "the lower limit of ids", "the upper limit of ids", "the ascending order of ids"
	for _, tc := range []struct {
		faults  string
		ids     extract.IDRange
		ignores string
		proof   string // for pages of 100; API v2 may find another one
		pages   int    // that come first
	}{
		{"ignore-min-id", extract.IDRange{}, lower, "result 1 came, but ids from 101 on were requested", 1},
		{"ignore-min-id", extract.IDRange{Min: 50}, lower, "result 1 came, but ids from 50 on were requested", 0},
		{"ignore-max-id", extract.IDRange{Min: 7, Max: 30}, upper, "result 31 came, but ids up to 30 were requested", 0},
		{"ignore-min-id,ignore-max-id", extract.IDRange{}, lower, "", 1},
		{"ignore-direction", extract.IDRange{}, order, "result 1099 came after result 1100", 0},
		{"ignore-direction,page-cap=50", extract.IDRange{}, order, "result 1099 came after result 1100", 0},
		{"ignore-direction,ignore-min-id,ignore-max-id", extract.IDRange{}, order, "", 0},
		{"by-date", extract.IDRange{}, order, "result 4 came after result 33", 0},
		{"unsorted", extract.IDRange{}, order, "", 0},
		{"twice=60", extract.IDRange{}, "that a page has each result once", "result 60 came twice on a page", 0},
	} {
		for _, generation := range generations {
			t.Run(tc.faults+" "+generation, func(t *testing.T) {
				server, c := serve(t, generation, formservice.Faults(tc.faults), numberedForm(1, 1100))
				got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, tc.ids, extract.Unknown)
				breach := extracttest.MustAs[*extract.BreachError](t, err)
				if breach.Ignores != tc.ignores || breach.Proof == "" || breach.ExitCode() != 65 {
					t.Errorf("%+v", breach)
				}
				if generation == formservice.V1 && tc.proof != "" && breach.Proof != tc.proof {
					t.Errorf("%s, want %s", breach.Proof, tc.proof)
				}
				want := fmt.Sprintf("page %d: the service does not do what its specification says: it ignores %s, also when asked a second time (%s); nothing was written", tc.pages+1, tc.ignores, breach.Proof)
				if err.Error() != want {
					t.Errorf("%v, want %s", err, want)
				}
				if asked := pagesAsked(server); asked != tc.pages+2 || len(got) != tc.pages*c.PageSize() {
					t.Errorf("%d requests, %d results", asked, len(got))
				}
			})
		}
	}
}

// bareService serves n results whose ids begin at 0: the specification says
// that ids are numbers, not that they begin at 1.
func bareService(n int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		least, most := 0, n-1
		if v := r.URL.Query().Get("fs_min_id"); v != "" {
			_, _ = fmt.Sscan(v, &least)
		}
		if v := r.URL.Query().Get("fs_max_id"); v != "" {
			_, _ = fmt.Sscan(v, &most)
		}
		var b strings.Builder
		for id := least; id <= min(most, n-1) && id < least+extract.PageSize; id++ {
			fmt.Fprintf(&b, `<result id="%d"/>`, id)
		}
		_, _ = w.Write([]byte(extracttest.Success(`<headings><heading for="1">One</heading></headings><results>` + b.String() + "</results>")))
	})
}

// TestReaderOfIDZero reaches the result 0, though a bound of 0 is no bound.
func TestReaderOfIDZero(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, 101, 201} {
		for _, count := range []int64{int64(n), extract.Unknown} {
			c := extracttest.Serve(t, bareService(n), nil)
			got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, count)
			if err != nil || !slices.Equal(got, sequence(0, n)) {
				t.Errorf("%d results: %d came, %v", n, len(got), err)
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

// TestReaderEnds counts the requests of a window of ids 1, 2, … up to n, and tells where a
// page that is not full ends it.
func TestReaderEnds(t *testing.T) {
	const none = extract.Unknown
	missing := formservice.Faults("v2-pagination=missing")
	for _, tc := range []struct {
		generation string
		faults     formservice.Faults
		n          int
		count      int64
		doubt      bool
		requests   int
		came       int
	}{
		{"v1", "", 37, 37, false, 1, 37},
		{"v1", "", 37, none, false, 2, 37}, // 37 may be the most that a page holds
		{"v1", "", 137, none, false, 3, 137},
		{"v1", "", 200, 200, false, 3, 200}, // a count may agree by chance
		{"v1", "", 37, 40, false, 2, 37},    // more were counted
		{"v1", "page-cap=50", 137, 137, false, 3, 137},
		{"v1", "page-cap=50", 137, none, false, 4, 137},
		{"v1", "page-cap=50", 150, 150, false, 3, 150},

		{"v2", "", 37, 37, false, 1, 37},
		{"v2", "", 37, none, false, 1, 37}, // the answer says that none follows
		{"v2", "", 37, none, true, 2, 37},
		{"v2", "", 500, none, false, 2, 500},
		{"v2", "", 537, none, false, 2, 537},
		{"v2", "page-cap=200", 537, none, false, 3, 537},
		{"v2", missing, 37, none, false, 2, 37},
		{"v2", missing + ",page-cap=200", 537, none, false, 4, 537},
		// Pages that are cut short, under headers that say that none follows.
		{"v2", "cut-pages=225", 300, 300, false, 2, 300},
		{"v2", "cut-pages=225", 300, none, true, 3, 300},
		{"v2", "cut-pages=225", 300, none, false, 1, 225},
		{"v2", "cut-pages=225,v2-pagination=zero", 300, none, true, 3, 300},
	} {
		server, c := serve(t, tc.generation, tc.faults, numberedForm(1, tc.n))
		r := extract.NewReader(c, "f", extract.ResultsQuery{})
		r.DoubtEnds(tc.doubt)
		got, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, tc.count)
		if asked := pagesAsked(server); err != nil || !slices.Equal(got, sequence(1, tc.came)) || asked != tc.requests {
			t.Errorf("%+v: %d came by %d requests, %v", tc, len(got), asked, err)
		}
	}
}

// TestReaderOfAShorterPage: one page of API v2 without counts is shorter than the one
// before. Results follow it all the same.
func TestReaderOfAShorterPage(t *testing.T) {
	for cut := 1; cut <= 3; cut++ {
		server, c := serve(t, formservice.V2, "", numberedForm(1, 1300))
		shapes := formservice.Faults("v2-pagination=missing")
		server.Before = func(r formservice.Request) {
			faults := shapes
			if r.Transaction == formservice.TransactionResults && r.Nth == cut {
				faults = faults.With("cut-pages", 120)
			}
			server.SetFaults(faults)
		}
		got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, extract.Unknown)
		if err != nil || !slices.Equal(got, sequence(1, 1300)) {
			t.Errorf("page %d is shorter: %d came, %v", cut, len(got), err)
		}
	}
}

// TestReaderOfEarlyResults: results of the second before a window come with its pages, and
// its count leaves them out. A short page that holds some does not end it.
func TestReaderOfEarlyResults(t *testing.T) {
	form := numberedForm(1, 9)
	day := extract.UnitDay.Cut(epoch2026, epoch2026.AddDate(0, 0, 2))[1]
	for id := range int64(9) { // four of the second before the day, and five of the day
		r, _ := form.Get(id + 1)
		r.Metas[0].Value = day.From.Add(time.Duration(id/4*3600-1) * time.Second).Format(extract.WireTime)
		if err := form.Update(r); err != nil {
			t.Fatal(err)
		}
	}
	_, c := serve(t, formservice.V2, "page-cap=5,v2-fractions=random", form)
	got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), day, extract.IDRange{}, 5)
	if err != nil || len(got) < 6 || !slices.Equal(got[len(got)-5:], []int64{5, 6, 7, 8, 9}) {
		t.Errorf("results %v came, %v", got, err)
	}
}

// TestReaderOfARepeatedRow: a row comes twice on one page while results are deleted. The
// page is asked for once more, and no other result is lost.
func TestReaderOfARepeatedRow(t *testing.T) {
	for _, generation := range generations {
		form := numberedForm(1, 1234)
		server, c := serve(t, generation, "twice-once=77,delete-every=1", form)
		got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, extract.Unknown)
		if err != nil {
			t.Fatal(err)
		}
		checkThroughout(t, form, 1234, got)
		pages := 1234/c.PageSize() + 1
		if generation == formservice.V1 {
			pages++ // whether 34 are a full page, the next one shows
		}
		if asked := pagesAsked(server); asked != pages+1 {
			t.Errorf("%s: %d requests, want %d", generation, asked, pages+1)
		}
	}
}

// checkThroughout checks that no result came twice, and that all of 1, 2, … up to n came
// that were there throughout.
func checkThroughout(t *testing.T, form *formservice.Form, n int, got []int64) {
	t.Helper()
	came, gone := map[int64]bool{}, map[int64]bool{}
	for _, id := range got {
		if came[id] {
			t.Errorf("result %d came twice", id)
		}
		came[id] = true
	}
	for _, ch := range form.Changes() {
		if ch.After.ID == 0 {
			gone[ch.Before.ID] = true
		}
	}
	for _, id := range sequence(1, n) {
		if !gone[id] && !came[id] {
			t.Errorf("result %d was there throughout and did not come", id)
		}
	}
	if len(form.Changes()) == 0 {
		t.Error("nothing changed")
	}
}

// TestReaderOfShortPagesThatShrink reads three windows of a hundred by pages of ninety.
// Thirty results of one of them are deleted before one of the requests. The windows are
// counted each, or together, so that the tails of those that ended open are asked for.
func TestReaderOfShortPagesThatShrink(t *testing.T) {
	needs.Slow(t)
	days := extract.UnitDay.Cut(epoch2026, epoch2026.AddDate(0, 0, 3))
	for _, together := range []bool{false, true} {
		for request := 1; request <= 7; request++ {
			for first := int64(1); first < 300; first += 30 {
				form := numberedForm(1, 300)
				for id := range int64(300) { // a hundred on each day
					r, _ := form.Get(id + 1)
					r.Metas[0].Value = days[id/100].From.Add(time.Hour).Format(extract.WireTime)
					if err := form.Update(r); err != nil {
						t.Fatal(err)
					}
				}
				server, c := serve(t, formservice.V1, "page-cap=90", form)
				server.Before = func(r formservice.Request) {
					for id := first; r.Number == request && id < first+30; id++ {
						form.Delete(id)
					}
				}
				reader := extract.NewReader(c, "f", extract.ResultsQuery{})
				var got []int64
				read := func(w extract.Window, ids extract.IDRange, count int64) bool {
					wr := reader.Window(w, ids, count)
					if together {
						wr.CountedTogether()
					}
					came, err := readPages(t, wr)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, came...)
					return wr.Open()
				}
				for i, w := range days {
					if !together {
						read(w, extract.IDRange{}, 100)
						continue
					}
					for open := read(w, extract.IDRange{}, extract.Unknown); open && len(got) < 100*(i+1); {
						open = read(w, extract.IDRange{Min: got[len(got)-1] + 1}, extract.Unknown)
					}
				}
				checkThroughout(t, form, 300, got)
			}
		}
	}
}

// TestReaderShares: of a window that was counted with others, a page that is not full ends
// it open, a last id at the bound does not, and an empty page does not.
func TestReaderShares(t *testing.T) {
	for _, tc := range []struct {
		faults formservice.Faults
		ids    extract.IDRange
		pages  []int
		open   bool
	}{
		{"", extract.IDRange{}, []int{100, 37}, true},
		{"page-cap=90", extract.IDRange{}, []int{90}, true},
		{"", extract.IDRange{Min: 38}, []int{100}, false},
		{"", extract.IDRange{Min: 100, Max: 120}, []int{21}, false},
		{"", extract.IDRange{Min: 500}, nil, false},
	} {
		_, c := serve(t, formservice.V1, tc.faults, numberedForm(1, 137))
		w := extract.NewReader(c, "f", extract.ResultsQuery{}).Window(extract.Window{}, tc.ids, extract.Unknown)
		w.CountedTogether()
		var pages []int
		for {
			p, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if p == nil {
				break
			}
			pages = append(pages, p.Len())
		}
		if !slices.Equal(pages, tc.pages) || w.Open() != tc.open || !w.Ended() {
			t.Errorf("%s %v: pages %v, open %v", tc.faults, tc.ids, pages, w.Open())
		}
	}
}

// TestReaderOfTheTail: nothing is bounded by the highest id where the service ignores the
// order that asks for it, and nothing fails where that one result cannot be served.
func TestReaderOfTheTail(t *testing.T) {
	server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, 350)}}
	ascending := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "=desc", "=asc")
		server.ServeHTTP(w, r)
	})
	server.Before = func(r formservice.Request) { // one page is short
		faults := formservice.Faults("")
		if r.Number == 2 {
			faults = "cut-pages=60"
		}
		server.SetFaults(faults)
	}
	c := extracttest.Serve(t, ascending, nil)
	got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, extract.Unknown)
	if err != nil || !slices.Equal(got, sequence(1, 350)) {
		t.Errorf("always ascending: %d came, %v", len(got), err)
	}
	server.Reset()
	c = extracttest.Serve(t, unserved(server, 350, tooHeavy["504"]), nil)
	got, err = readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, extract.Unknown)
	if _ = extracttest.MustAs[*transport.Error](t, err); !strings.Contains(err.Error(), "after id 349,") || len(got) != 349 {
		t.Errorf("%d came, %v", len(got), err)
	}
}

// TestReaderUntil gives the upper part of a counted window to another reader. Its count no
// longer ends it.
func TestReaderUntil(t *testing.T) {
	_, c := serve(t, formservice.V1, "page-cap=50", numberedForm(1, 240))
	w := extract.NewReader(c, "f", extract.ResultsQuery{}).Window(extract.Window{}, extract.IDRange{}, 100)
	w.Until(180)
	w.Until(230) // no bound rises
	got, err := readPages(t, w)
	if err != nil || !slices.Equal(got, sequence(1, 50)) || !w.Open() {
		t.Errorf("%d came, open %v, %v", len(got), w.Open(), err)
	}
	w = extract.NewReader(c, "f", extract.ResultsQuery{}).Window(extract.Window{}, extract.IDRange{}, extract.Unknown)
	w.Until(180)
	got, err = readPages(t, w)
	if err != nil || !slices.Equal(got, sequence(1, 180)) || w.Open() {
		t.Errorf("%d came, open %v, %v", len(got), w.Open(), err)
	}
}

// TestReaderWindows bounds dates: each result lies in the window of its date.
func TestReaderWindows(t *testing.T) {
	for _, generation := range generations {
		form := numberedForm(1, 5000)
		_, c := serve(t, generation, "", form)
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
		last, _ := form.Get(4995) // 4993 minutes and half an hour
		if date, _ := last.Meta("date_finish"); !r.Newest().Equal(extracttest.Wall(date)) {
			t.Errorf("the newest is of %s, want %s", r.Newest(), date)
		}
	}
}

// TestReaderShared reads windows side by side with one Reader, also on services that all
// of them find out about at once.
func TestReaderShared(t *testing.T) {
	needs.Slow(t)
	services := map[string]formservice.Faults{"504 above 30": "page-504=30"}
	for _, name := range []string{"none", "pages of 50", "a row twice", "faults that pass"} {
		services[name] = lawfulServices()[name]
	}
	for name, faults := range services {
		for _, generation := range generations {
			t.Run(name+" "+generation, func(t *testing.T) {
				server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, 7200)}, Faults: faults, API: formservice.Both}
				c := extracttest.ServeBy(t, generation, server, func(cfg *transport.Config) {
					cfg.Concurrency, cfg.Retries, cfg.Patience = 8, 1000, 30*time.Second
				})
				r := extract.NewReader(c, "f", extract.ResultsQuery{})
				var told atomic.Int32
				r.Notice = func(string) { told.Add(1) }
				var mu sync.Mutex
				seen := map[int64]int{}
				var group sync.WaitGroup
				for _, w := range extract.UnitDay.Cut(epoch2026, epoch2026.AddDate(0, 0, 8)) {
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
				for _, id := range sequence(1, 7200) {
					if seen[id] != 1 {
						t.Fatalf("result %d came %d times", id, seen[id])
					}
				}
				if server.Peak() > 8 {
					t.Errorf("%d requests at once", server.Peak())
				}
				want := int32(0)
				if faults.Value("page-504") != "" {
					want = 1
				}
				if told.Load() != want && name != "faults that pass" {
					t.Errorf("told %d times", told.Load())
				}
			})
		}
	}
}

// TestReaderOfALivingForm: results that are there throughout come once, what
// is deleted, inserted and edited meanwhile may come once.
func TestReaderOfALivingForm(t *testing.T) {
	needs.Slow(t)
	missing := formservice.Faults("v2-pagination=missing")
	for name, faults := range map[string]formservice.Faults{
		"deletes":      "delete-every=2",
		"inserts":      "insert-every=1," + missing,
		"short pages":  "insert-every=1,cut-pages=90," + missing,
		"edits":        "edit-every=1",
		"all":          "delete-every=2,insert-every=1,edit-every=3",
		"capped":       "delete-every=1,insert-every=2,page-cap=90",
		"504 above 60": "delete-every=1,insert-every=2,page-504=60",
	} {
		for _, generation := range generations {
			t.Run(name+" "+generation, func(t *testing.T) {
				for seed, count := range []int64{2300, extract.Unknown} {
					faults = faults.With("seed", seed)
					form := numberedForm(1, 2300)
					server, c := serve(t, generation, faults, form)
					got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, count)
					if err != nil {
						t.Fatal(err)
					}
					checkThroughout(t, form, 2300, got)
					if asked := pagesAsked(server); asked > 150 {
						t.Errorf("%d requests", asked)
					}
				}
			})
		}
	}
}

// limitsOf returns the limits of the requests for pages, in their order. A limit that is
// not sent is that of a full page.
func limitsOf(t *testing.T, server *formservice.Server, full int) (limits []int) {
	t.Helper()
	for _, r := range server.Log() {
		if r.Transaction != formservice.TransactionResults {
			continue
		}
		limit := full
		for part := range strings.SplitSeq(r.Query, "&") {
			if value, ok := strings.CutPrefix(strings.TrimPrefix(part, "fs_"), "limit="); ok {
				if _, err := fmt.Sscan(value, &limit); err != nil {
					t.Fatal(err)
				}
			}
		}
		limits = append(limits, limit)
	}
	return limits
}

// TestReaderHalves the pages that a service cannot serve, and asks for more after ten of
// them. It says so once.
func TestReaderHalves(t *testing.T) {
	ten := func(limit int) []int { return slices.Repeat([]int{limit}, 10) }
	for _, tc := range []struct {
		generation string
		most       int // results of a page that the service serves
		n          int
		limits     []int
	}{
		{"v1", 50, 620, slices.Concat([]int{100, 100, 1}, ten(50), []int{100, 100, 1}, []int{50, 50, 50})},
		{"v1", 30, 300, slices.Concat([]int{100, 100, 1, 50, 50}, ten(25), []int{50, 50, 1}, []int{25, 25, 25})},
		{"v1", 100, 620, slices.Repeat([]int{100}, 7)},
		{"v2", 250, 3000, slices.Concat([]int{500, 500, 1}, ten(250), []int{500, 500, 1}, []int{250, 250, 250})},
		{"v2", 130, 1300, slices.Concat([]int{500, 500, 1, 250, 250}, ten(125), []int{250})},
	} {
		server, c := serve(t, tc.generation, formservice.Faults("").With("page-504", tc.most), numberedForm(1, tc.n))
		r := extract.NewReader(c, "f", extract.ResultsQuery{})
		var said []string
		r.Notice = func(what string) { said = append(said, what) }
		got, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, int64(tc.n))
		if err != nil || !slices.Equal(got, sequence(1, tc.n)) {
			t.Errorf("%+v: %d came, %v", tc, len(got), err)
		}
		limits := limitsOf(t, server, c.PageSize())
		// The first request of all may be repeated more often: nobody knows the service yet.
		if at := slices.Index(limits, 1); at > 0 {
			limits = limits[at-2:]
		}
		if len(limits) < len(tc.limits) || !slices.Equal(limits[:len(tc.limits)], tc.limits) {
			t.Errorf("%s, 504 above %d: limits %v, want %v", tc.generation, tc.most, limits, tc.limits)
		}
		if want := tc.most < c.PageSize(); (len(said) == 1) != want || len(said) > 1 || want && !strings.Contains(said[0], fmt.Sprintf("cannot return %d results at once", c.PageSize())) {
			t.Errorf("%+v: said %q", tc, said)
		}
	}
}

// unserved answers with what fails in place of pages that hold a result.
func unserved(server http.Handler, id int, fails http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, r)
		if body := answer.Body.String(); strings.Contains(body, fmt.Sprintf(`<result id="%d"`, id)) || strings.Contains(body, fmt.Sprintf(`"id":"%d"`, id)) && strings.HasSuffix(r.URL.Path, "/results") {
			fails(w, r)
			return
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// tooHeavy are the ways in which a service fails at what is too much for it.
var tooHeavy = map[string]http.HandlerFunc{
	"504": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) },
	"504 of the service": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
		if strings.HasPrefix(r.URL.Path, "/api/v2/") {
			_, _ = w.Write([]byte(`{"error":{"message":"timed out","status":504}}`))
		} else {
			_, _ = w.Write([]byte(`<fs_response status="error"><error code="0">timed out</error></fs_response>`))
		}
	},
	"cut": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`<fs_response status="success">`))
		panic(http.ErrAbortHandler)
	},
	"truncated": func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v2/") {
			_, _ = w.Write([]byte(`{"results":[`))
		} else {
			_, _ = w.Write([]byte(`<?xml version="1.0"?><fs_response status="success"><results>`))
		}
	},
}

// TestReaderNamesTheUnserved: one result cannot be served, wherever it is.
func TestReaderNamesTheUnserved(t *testing.T) {
	for name, fails := range tooHeavy {
		for _, generation := range generations {
			for _, id := range []int{11, 700, 810} { // the first, one in the middle, the last
				t.Run(fmt.Sprint(name, " ", generation, " ", id), func(t *testing.T) {
					server := &formservice.Server{Forms: []*formservice.Form{numberedForm(11, 800)}, API: formservice.Both}
					c := extracttest.ServeBy(t, generation, unserved(server, id, fails), func(cfg *transport.Config) { cfg.Retries = 2 })
					got, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extract.Window{}, extract.IDRange{}, 800)
					_ = extracttest.MustAs[*transport.Error](t, err)
					behind := fmt.Sprintf("the result after id %d", id-1)
					if id == 11 {
						behind = "the first result"
					}
					if transport.Temporary(err) || !strings.Contains(err.Error(), "cannot return "+behind+", but it answers other requests") {
						t.Error(err)
					}
					if want := sequence(11, id-11); !slices.Equal(got, want) {
						t.Errorf("%d results came before it, want %d", len(got), len(want))
					}
				})
			}
		}
	}
}

// TestReaderInAnOutage: everything fails with 504 from some request on, for good. Pages are
// not made smaller, and another run may help.
func TestReaderInAnOutage(t *testing.T) {
	for _, generation := range generations {
		for _, from := range []int{1, 2, 4} {
			server, _ := serve(t, generation, "html-status=504", numberedForm(1, 3000))
			server.Decide = func(r formservice.Request) formservice.Fault {
				if r.Number >= from {
					return formservice.FaultHTML
				}
				return formservice.NoFault
			}
			c := extracttest.ServeBy(t, generation, server, func(cfg *transport.Config) { cfg.Patience = 200 * time.Millisecond })
			r := extract.NewReader(c, "f", extract.ResultsQuery{})
			r.Notice = func(what string) { t.Error(what) }
			_, err := readWindow(t, r, extract.Window{}, extract.IDRange{}, 3000)
			if _, unserved := errors.AsType[*transport.Error](err); err == nil || unserved || !transport.Temporary(err) {
				t.Errorf("%s from request %d on: %v", generation, from, err)
			}
			for _, limit := range limitsOf(t, server, c.PageSize()) {
				if limit != 1 && limit != c.PageSize() {
					t.Errorf("%s from request %d on: a page of %d was asked for", generation, from, limit)
				}
			}
		}
	}
}

// TestReaderErrors name the window and the page.
func TestReaderErrors(t *testing.T) {
	server := &formservice.Server{Forms: []*formservice.Form{numberedForm(1, 500)}, Decide: func(r formservice.Request) formservice.Fault {
		if r.Number > 1 {
			return formservice.FaultHTML
		}
		return formservice.NoFault
	}}
	c := extracttest.ServeBy(t, formservice.V1, server, func(cfg *transport.Config) { cfg.Retries = 1 })
	_, err := readWindow(t, extract.NewReader(c, "f", extract.ResultsQuery{}), extracttest.Window("2026-01-01", "2026-02-01"), extract.IDRange{}, extract.Unknown)
	if err == nil || !strings.Contains(err.Error(), "window 2026-01-01 00:00:00 to 2026-02-01 00:00:00, page 2: Get Results of form f") {
		t.Errorf("err = %v", err)
	}
}
