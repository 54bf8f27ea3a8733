package extract_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
)

// dates are the wall-clock seconds of a form's results, ascending.
type dates []int64

func newDates(ds []int64) dates {
	slices.Sort(ds)
	return ds
}

func (d dates) in(w extract.Window) int64 {
	from, to := 0, len(d)
	if !w.From.IsZero() {
		from, _ = slices.BinarySearch(d, w.From.Unix())
	}
	if !w.To.IsZero() {
		to, _ = slices.BinarySearch(d, w.To.Unix())
	}
	return int64(max(0, to-from))
}

func (d dates) counter() extract.Counter {
	return func(_ context.Context, w extract.Window) (int64, error) { return d.in(w), nil }
}

func at(s string) int64 { return extracttest.Wall(s).Unix() }

// spread gives n dates evenly over a window.
func spread(n int, w extract.Window) []int64 {
	ds := make([]int64, n)
	from, span := w.From.Unix(), w.To.Unix()-w.From.Unix()
	for i := range ds {
		ds[i] = from + int64(float64(span)*float64(i)/float64(n))
	}
	return ds
}

// random gives n dates at random in a window.
func random(n int, w extract.Window, seed uint64) []int64 {
	r := rand.New(rand.NewPCG(seed, 7))
	ds := make([]int64, n)
	for i := range ds {
		ds[i] = w.From.Unix() + r.Int64N(w.To.Unix()-w.From.Unix())
	}
	return ds
}

// pagesOf is what WindowReader pays for the plan's windows: pages of 100, and
// a last one that is shorter, empty perhaps.
func pagesOf(p *extract.Plan, d dates) int {
	pages := 0
	for _, w := range p.Windows {
		if w.Count != 0 {
			pages += int(d.in(w.Window))/extract.PageSize + 1
		}
	}
	return pages
}

// mostRequests is design.md's bound.
func mostRequests(results int) int { return int(1.05*math.Ceil(float64(results)/extract.PageSize) + 3) }

// checkPlan checks what holds for every plan of unchanging data.
func checkPlan(t testing.TB, p *extract.Plan, d dates) {
	t.Helper()
	checkTiles(t, p)
	for _, w := range p.Windows {
		if n := d.in(w.Window); w.Count != extract.Unknown && w.Count != n {
			t.Errorf("window %s counts %d, it holds %d", w.Window, w.Count, n)
		}
		if w.Window.From.IsZero() || w.Window.To.IsZero() || p.Range.Partition == extract.UnitNone || w.Count == 0 {
			continue
		}
		if p.Range.Partition.Spans(w.Window) != 1 {
			t.Errorf("window %s crosses a partition's boundary", w.Window)
		}
	}
}

// checkTiles checks that the windows tile the range without hole or overlap.
func checkTiles(t testing.TB, p *extract.Plan) {
	t.Helper()
	if len(p.Windows) == 0 {
		t.Fatal("no windows")
	}
	first, last := p.Windows[0].Window, p.Windows[len(p.Windows)-1].Window
	if !first.From.Equal(p.Range.Window.From) || !last.To.Equal(p.Range.Window.To) {
		t.Errorf("windows from %s to %s, the range is %s", first, last, p.Range.Window)
	}
	for i, w := range p.Windows {
		if i > 0 && !w.Window.From.Equal(p.Windows[i-1].Window.To) {
			t.Errorf("%s follows %s", w.Window, p.Windows[i-1].Window)
		}
		if !w.Window.From.IsZero() && !w.Window.To.IsZero() && !w.Window.From.Before(w.Window.To) {
			t.Errorf("window %s is empty", w.Window)
		}
		if w.Count < extract.Unknown {
			t.Errorf("window %s counts %d", w.Window, w.Count)
		}
	}
}

func mustPlan(t testing.TB, r extract.Range, d dates) *extract.Plan {
	t.Helper()
	p, err := extract.NewPlan(context.Background(), r, d.counter())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlanCost holds the bound of design.md: plan, paging and the count of the
// verification together cost at most 1.05 × ceil(results / 100) + 3 requests.
func TestPlanCost(t *testing.T) {
	year := extracttest.Window("2025-01-01", "2026-01-01")
	hour := extracttest.Window("2025-09-03 10:00:00", "2025-09-03 11:00:00")
	const n = 200_000
	oneSecond := make([]int64, n)
	for i := range oneSecond {
		oneSecond[i] = at("2025-04-05 06:07:08")
	}
	fullPages := make([]int64, n) // a hundred results on each of two thousand seconds: every window holds a multiple
	for i := range fullPages {
		fullPages[i] = year.From.Unix() + int64(i/100)*15_000
	}
	for _, tc := range []struct {
		name  string
		dates []int64
		w     extract.Window
		most  int // windows' results, 0: not checked
	}{
		{"even", spread(n, year), year, 2 * extract.DefaultTarget},
		{"random", random(n, year, 1), year, 2 * extract.DefaultTarget},
		{"even, hundreds", fullPages, year, 0},
		{"a fifth in an hour", slices.Concat(random(n*4/5, year, 2), random(n/5, hour, 3)), year, 0},
		{"all in a second", oneSecond, year, 0},
		{"all in an hour", random(n, hour, 4), year, 0},
		{"the last month of ten years", random(n, extracttest.Window("2025-12-01", "2026-01-01"), 5), extracttest.Window("2016-01-01", "2026-01-01"), 0},
		{"no lower bound", random(n, year, 6), extract.Window{To: year.To}, 0},
		{"one over the target", random(extract.DefaultTarget+1, year, 7), year, 0},
		{"ten thousand", random(10_000, year, 8), year, 0},
		{"a few bursts", slices.Concat(random(n/4, hour, 9), random(n/4, extracttest.Window("2025-01-01", "2025-01-02"), 10), spread(n/2, year)), year, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDates(tc.dates)
			p := mustPlan(t, extract.Range{Window: tc.w}, d)
			checkPlan(t, p, d)
			cost, bound := p.Requests+pagesOf(p, d)+1, mostRequests(len(d))
			largest := int64(0)
			for _, w := range p.Windows {
				largest = max(largest, w.Count)
			}
			t.Logf("%d results: %d counts + %d pages + 1 = %d, bound %d; %d windows, largest %d", len(d), p.Requests, pagesOf(p, d), cost, bound, len(p.Windows), largest)
			if cost > bound {
				t.Errorf("%d requests, the bound is %d", cost, bound)
			}
			if tc.most > 0 && largest > int64(tc.most) {
				t.Errorf("the largest window holds %d results", largest)
			}
			if estimate := p.Pages(); math.Abs(float64(estimate)-float64(pagesOf(p, d))) > 1 {
				t.Errorf("%d pages are estimated, %d are needed", estimate, pagesOf(p, d))
			}
		})
	}
}

// TestPlanOfFewResults: they cost a handful of requests, not one a day.
func TestPlanOfFewResults(t *testing.T) {
	year := extracttest.Window("2025-01-01", "2026-01-01")
	for _, tc := range []struct {
		n         int
		partition extract.Unit
		w         extract.Window
		most      int
	}{
		{0, extract.UnitNone, year, 1},
		{1, extract.UnitNone, year, 2},
		{12, extract.UnitNone, year, 2},
		{300, extract.UnitNone, year, 5},
		{300, extract.UnitNone, extract.Window{To: year.To}, 5},
		{0, extract.UnitDay, year, 1},
		{1, extract.UnitDay, year, 12},
		{5, extract.UnitDay, year, 50},
		{1, extract.UnitMonth, year, 13},
		{300, extract.UnitMonth, year, 20},
		{3, extract.UnitYear, extract.Window{To: year.To}, 12},
		{1, extract.UnitDay, extract.Window{To: year.To}, 25},
	} {
		d := newDates(random(tc.n, year, uint64(tc.n)))
		p := mustPlan(t, extract.Range{Window: tc.w, Partition: tc.partition}, d)
		checkPlan(t, p, d)
		t.Logf("%d results, unit %d, %s: %d counts + %d pages", tc.n, tc.partition, tc.w, p.Requests, pagesOf(p, d))
		if cost := p.Requests + pagesOf(p, d); cost > tc.most {
			t.Errorf("%d results, partition %v, %s: %d counts and %d pages, want at most %d", tc.n, tc.partition, tc.w, p.Requests, pagesOf(p, d), tc.most)
		}
	}
}

// TestPlanWindowsKeepToTheTarget where they can be cut and the budget lasts.
func TestPlanWindowsKeepToTheTarget(t *testing.T) {
	year := extracttest.Window("2025-01-01", "2026-01-01")
	d := newDates(random(30_000, year, 1))
	p := mustPlan(t, extract.Range{Window: year, Target: 10_000}, d)
	checkPlan(t, p, d)
	for _, w := range p.Windows {
		if w.Count > 10_000 {
			t.Errorf("window %s holds %d", w.Window, w.Count)
		}
	}
}

func TestPlanPartitions(t *testing.T) {
	year := extracttest.Window("2025-01-01", "2026-01-01")
	for _, tc := range []struct {
		unit    extract.Unit
		n       int
		windows int // with results
		most    int // requests
	}{
		{extract.UnitDay, 36_500, 365, 365*2 + 100},
		{extract.UnitMonth, 24_000, 12, 290},
		{extract.UnitYear, 3000, 1, 35},
	} {
		d := newDates(spread(tc.n, year))
		p := mustPlan(t, extract.Range{Window: year, Partition: tc.unit}, d)
		checkPlan(t, p, d)
		n := 0
		for _, w := range p.Windows {
			if d.in(w.Window) > 0 {
				n++
			}
		}
		if cost := p.Requests + pagesOf(p, d); n != tc.windows || cost > tc.most {
			t.Errorf("unit %v: %d windows and %d requests (%d counts), want %d and at most %d", tc.unit, n, cost, p.Requests, tc.windows, tc.most)
		}
	}
}

// TestFair: twice the pages, and one for each partition with results and for each cut.
func TestFair(t *testing.T) {
	month := func(total int64, windows ...extract.Planned) extract.Plan {
		return extract.Plan{Range: extract.Range{Partition: extract.UnitMonth}, Total: total, Windows: windows}
	}
	window := func(from, to string, count int64) extract.Planned {
		return extract.Planned{Window: extracttest.Window(from, to), Count: count}
	}
	first, second, none := window("2025-01-01", "2025-01-15", 101), window("2025-01-15", "2025-02-01", 99), window("2025-02-01", "2025-03-01", 0)
	cut, whole := month(101, first), month(200, first, second)
	cut.Range.Cuts, whole.Range.Partition = []time.Time{{}, first.Window.To}, extract.UnitNone
	for name, c := range map[string]struct {
		plan extract.Plan
		want int64
	}{
		"a month in two windows": {month(200, first, second), 5},
		"two months":             {month(300, first, second, window("2025-02-01", "2025-02-02", 100)), 8},
		"a month of no results":  {month(200, first, second, none), 5},
		"nothing counted":        {month(extract.Unknown, window("2025-01-01", "2025-02-01", extract.Unknown)), 101},
		"a cut":                  {cut, 6},
		"no partitions":          {whole, 4},
	} {
		if got := c.plan.Fair(); got != c.want {
			t.Errorf("%s: %d requests are fair, want %d", name, got, c.want)
		}
	}
}

func TestPlanWithoutLowerBound(t *testing.T) {
	to := extracttest.Wall("2026-01-01")
	for _, unit := range []extract.Unit{extract.UnitNone, extract.UnitDay, extract.UnitMonth, extract.UnitYear} {
		for _, first := range []string{"1969-05-05", "1999-12-31", "2025-06-01"} {
			d := newDates(append(random(20_000, extracttest.Window("2025-07-01", "2025-12-01"), 1), at(first)))
			p := mustPlan(t, extract.Range{Window: extract.Window{To: to}, Partition: unit}, d)
			checkPlan(t, p, d)
			if !p.Windows[0].Window.From.IsZero() {
				t.Errorf("unit %v: the first window is %s", unit, p.Windows[0].Window)
			}
			if p.Windows[0].Count == 0 && len(p.Windows) > 1 {
				t.Errorf("unit %v: an empty window comes first", unit)
			}
			if p.Requests > 160 {
				t.Errorf("unit %v, first %s: %d counts", unit, first, p.Requests)
			}
		}
	}
	// A range that ends before the time that stands for no bound.
	d := newDates([]int64{at("1960-01-01")})
	for _, r := range []extract.Range{{Partition: extract.UnitDay}, {Period: extract.Period{Days: 1}}, {Period: extract.Period{Months: 1}, Partition: extract.UnitMonth}} {
		r.Window.To = extracttest.Wall("1965-01-01")
		checkPlan(t, mustPlan(t, r, d), d)
	}
}

func TestPlanCuts(t *testing.T) {
	year := extracttest.Window("2025-01-01", "2026-01-01")
	d := newDates(random(10_000, year, 1))
	cuts := []time.Time{
		extracttest.Wall("2025-03-03 03:03:03"), extracttest.Wall("2025-03-03 03:03:04"), extracttest.Wall("2025-12-31 23:59:59"),
		{},
		year.From, year.To, extracttest.Wall("2024-01-01"), extracttest.Wall("2027-01-01"), extracttest.Wall("2025-03-03 03:03:03"),
	}
	for _, r := range []extract.Range{
		{Window: year}, {Window: year, Partition: extract.UnitMonth}, {Window: year, Period: extract.Period{Months: 1}}, {Window: year, Uncounted: true}, {Window: extract.Window{To: year.To}},
	} {
		r.Cuts = cuts
		p := mustPlan(t, r, d)
		checkPlan(t, p, d)
		for _, cut := range cuts[:3] {
			if !slices.ContainsFunc(p.Windows, func(w extract.Planned) bool { return w.Window.From.Equal(cut) }) {
				t.Errorf("%+v: no window begins at %s", r, cut)
			}
		}
	}
	for _, r := range []extract.Range{{Partition: extract.UnitDay}, {Period: extract.Period{Days: 2}, Partition: extract.UnitMonth}} { // a cut before the first result
		r.Window.To, r.Cuts = year.To, []time.Time{extracttest.Wall("2020-02-02 02:02:02")}
		p := mustPlan(t, r, d)
		checkPlan(t, p, d)
		if p.Windows[0].Count != 0 || p.Windows[1].Count != 0 || !p.Windows[1].Window.From.Equal(r.Cuts[0]) {
			t.Errorf("%+v", p.Windows[:3])
		}
	}
	p := mustPlan(t, extract.Range{Window: year, Cuts: cuts}, nil)
	if len(p.Windows) != 4 || p.Requests != 1 {
		t.Errorf("an empty range: %d windows, %d counts", len(p.Windows), p.Requests)
	}
}

func TestPlanFixed(t *testing.T) {
	w := extracttest.Window("2024-02-27 12:00:00", "2024-03-02 06:00:00")
	d := newDates(random(1000, w, 1))
	for _, tc := range []struct {
		period    extract.Period
		partition extract.Unit
		want      []string // where the windows after the first begin
	}{
		{extract.Period{Days: 1}, extract.UnitNone, []string{"2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"}},
		{extract.Period{Days: 7}, extract.UnitNone, nil},
		{extract.Period{Days: 7}, extract.UnitMonth, []string{"2024-03-01"}},
		{extract.Period{Months: 1}, extract.UnitDay, []string{"2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"}},
		{extract.Period{Seconds: 36 * 3600}, extract.UnitNone, []string{"2024-02-28 12:00:00", "2024-03-01"}},
	} {
		p := mustPlan(t, extract.Range{Window: w, Period: tc.period, Partition: tc.partition}, d)
		checkPlan(t, p, d)
		got := make([]string, 0, len(p.Windows))
		for _, w := range p.Windows[1:] {
			got = append(got, strings.TrimSuffix(w.Window.From.Format(extract.WireTime), " 00:00:00"))
		}
		if !slices.Equal(got, tc.want) && tc.period.Seconds == 0 {
			t.Errorf("%s with %v: cuts %v, want %v", tc.period, tc.partition, got, tc.want)
		}
		if p.Requests != 1 {
			t.Errorf("%d counts", p.Requests)
		}
	}
	open := mustPlan(t, extract.Range{Window: extract.Window{To: w.To}, Period: extract.Period{Days: 1}}, d)
	checkPlan(t, open, d)
	if len(open.Windows) > 10 || open.Requests > 30 {
		t.Errorf("without a lower bound: %d windows, %d counts", len(open.Windows), open.Requests)
	}
	ignoring := func(context.Context, extract.Window) (int64, error) { return 450, nil }
	_, err := extract.NewPlan(t.Context(), extract.Range{Window: extract.Window{To: w.To}, Period: extract.Period{Seconds: 900}}, ignoring)
	if e, ok := errors.AsType[*extract.BreachError](err); !ok || e.Ignores != "the range of dates" {
		t.Errorf("a service that ignores dates: %v", err)
	}
}

func TestPlanUncounted(t *testing.T) {
	w := extracttest.Window("2026-01-01", "2026-01-05")
	never := func(context.Context, extract.Window) (int64, error) { return 0, errors.New("a count was asked for") }
	for _, tc := range []struct {
		r       extract.Range
		windows int // 0: an error
		want    string
	}{
		{extract.Range{Window: w, Period: extract.Period{Days: 1}}, 4, ""},
		{extract.Range{Window: w}, 1, ""},
		{extract.Range{Window: extract.Window{}}, 1, ""},
		{extract.Range{Window: w, Partition: extract.UnitDay}, 4, ""},
		{extract.Range{Window: extract.Window{To: w.To}}, 1, ""},
		{extract.Range{Window: extract.Window{To: w.To}, Partition: extract.UnitDay}, 0, "set extract.from"},
		{extract.Range{Window: extract.Window{To: w.To}, Period: extract.Period{Days: 1}}, 0, "set extract.from"},
		{extract.Range{Window: extract.Window{From: w.From}, Period: extract.Period{Days: 1}}, 0, "set extract.to"},
		{extract.Range{Window: extracttest.Window("1970-01-01", "2026-01-01"), Period: extract.Period{Seconds: 60}}, 0, "windows"},
	} {
		tc.r.Uncounted = true
		p, err := extract.NewPlan(t.Context(), tc.r, never)
		if tc.windows == 0 {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v: err = %v, want %q", tc.r, err, tc.want)
			}
			continue
		}
		if err != nil || len(p.Windows) != tc.windows || p.Total != extract.Unknown || p.Requests != 0 || p.Pages() != extract.Unknown {
			t.Errorf("%+v: %+v, %v", tc.r, p, err)
		}
	}
}

// TestPlanWithoutUpperBound is one window: that of a search without dates.
func TestPlanWithoutUpperBound(t *testing.T) {
	d := newDates(random(100_000, extracttest.Window("2025-01-01", "2026-01-01"), 1))
	p := mustPlan(t, extract.Range{}, d)
	if len(p.Windows) != 1 || p.Windows[0] != (extract.Planned{Count: 100_000}) {
		t.Errorf("%+v", p.Windows)
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	year := extracttest.Window("2025-01-01", "2026-01-01")
	for _, unit := range []extract.Unit{extract.UnitNone, extract.UnitDay, extract.UnitMonth} {
		d := newDates(random(50_000, year, 3))
		first := mustPlan(t, extract.Range{Window: year, Partition: unit}, d)
		for range 5 {
			if again := mustPlan(t, extract.Range{Window: year, Partition: unit}, d); !reflect.DeepEqual(first, again) {
				t.Fatalf("unit %v: another plan for the same results", unit)
			}
		}
	}
}

// TestPlanOfALivingForm: counts that drift while the plan is made give neither
// a negative count nor a hole.
func TestPlanOfALivingForm(t *testing.T) {
	year := extracttest.Window("2025-01-01", "2026-01-01")
	for seed := range uint64(50) {
		d := newDates(random(20_000, year, seed))
		var asked atomic.Int64
		p, err := extract.NewPlan(t.Context(), extract.Range{Window: extract.Window{To: year.To}, Partition: extract.Unit(seed % 4)}, func(_ context.Context, w extract.Window) (int64, error) {
			drift := asked.Add(1)*int64(seed)*7919%41 - 20
			return max(0, d.in(w)+drift), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		checkTiles(t, p)
		if p.Pages() < 0 {
			t.Errorf("%d pages", p.Pages())
		}
	}
}

// TestPlanThatNobodyVerifies: results come to early days after the whole range was
// counted. The last day holds a result, and differences of counts say that it is empty.
func TestPlanThatNobodyVerifies(t *testing.T) {
	last := at("2025-12-31 12:00:00")
	d := newDates(append(spread(60, extracttest.Window("2025-01-01", "2025-01-05")), last))
	for _, unverified := range []bool{false, true} {
		var asked atomic.Int64
		r := extract.Range{Window: extracttest.Window("2025-01-01", "2026-01-01"), Partition: extract.UnitDay, Unverified: unverified}
		p, err := extract.NewPlan(t.Context(), r, func(_ context.Context, w extract.Window) (int64, error) {
			n := d.in(w)
			if asked.Add(1) > 1 && w.From.Equal(extracttest.Wall("2025-01-01")) {
				n++ // one more result came there
			}
			return n, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		checkTiles(t, p)
		read := slices.ContainsFunc(p.Windows, func(w extract.Planned) bool {
			return w.Count != 0 && w.Window.From.Unix() <= last && last < w.Window.To.Unix()
		})
		if read != unverified {
			t.Errorf("unverified %t: the last day is read: %t", unverified, read)
		}
	}
}

func TestPlanFailsWithItsCounts(t *testing.T) {
	broken := errors.New("broken")
	year := extracttest.Window("2025-01-01", "2026-01-01")
	d := newDates(random(20_000, year, 1))
	for _, r := range []extract.Range{{Window: year}, {Window: extract.Window{To: year.To}, Period: extract.Period{Days: 1}}} {
		for fails := range int64(4) {
			var asked atomic.Int64
			_, err := extract.NewPlan(t.Context(), r, func(_ context.Context, w extract.Window) (int64, error) {
				if asked.Add(1) > fails {
					return 0, broken
				}
				return d.in(w), nil
			})
			if !errors.Is(err, broken) {
				t.Errorf("err = %v", err)
			}
		}
	}
}

// FuzzPlan makes any plan over any dates: the windows tile the range, and
// every result lies in exactly one window that is read.
func FuzzPlan(f *testing.F) {
	f.Add(uint64(1), 500, uint8(0), int64(0), int64(365*86400), 100, uint8(0))
	f.Add(uint64(2), 5000, uint8(1), int64(12345), int64(40*86400), 50, uint8(1))
	f.Add(uint64(3), 3000, uint8(3), int64(-86400), int64(20*365*86400), 10, uint8(2))
	f.Add(uint64(4), 2000, uint8(2), int64(77), int64(3600), 1, uint8(3))
	f.Add(uint64(5), 1, uint8(1), int64(0), int64(1), 1, uint8(4))
	f.Fuzz(func(t *testing.T, seed uint64, n int, unit uint8, start, length int64, target int, kind uint8) {
		n, target = (n%5000+5000)%5000, 1+(target%5000+5000)%5000
		const years = 30 * 366 * 86400
		from := time.Unix(1_700_000_000+start%years, 0).UTC()
		w := extract.Window{from, from.Add(time.Duration(1+(length%years+years)%years) * time.Second)}
		r := extract.Range{Window: w, Partition: extract.Unit(unit % 4), Target: target}
		if kind&1 != 0 {
			r.Window.From = time.Time{}
		}
		if kind&2 != 0 && w.To.Sub(w.From) < 400*24*time.Hour {
			r.Period = [...]extract.Period{{Days: 1 + n%40}, {Months: 1 + n%15}, {Seconds: 3600 * (1 + n%50)}}[seed%3]
		}
		if kind&4 != 0 {
			r.Cuts = []time.Time{w.From.Add(w.To.Sub(w.From) / 3).Truncate(time.Second)}
		}
		ds := random(n, w, seed)
		for i := range ds {
			if seed%3 == uint64(i%4) { // bursts
				ds[i] = ds[0]
			}
		}
		d := newDates(ds)
		p, err := extract.NewPlan(context.Background(), r, d.counter())
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, p, d)
		if t.Failed() {
			return
		}
		read := int64(0)
		for _, w := range p.Windows {
			if w.Count != 0 {
				read += d.in(w.Window)
			}
		}
		if read != int64(len(d)) || p.Total != read {
			t.Errorf("%d results lie in windows that are read, there are %d, the plan says %d", read, len(d), p.Total)
		}
		if r.Partition == extract.UnitNone && r.Period.Auto() && r.Cuts == nil {
			if cost, bound := p.Requests+pagesOf(p, d)+1, mostRequests(len(d)); cost > bound {
				t.Errorf("%d requests, the bound is %d", cost, bound)
			}
		}
	})
}

func ExampleNewPlan() {
	// Five thousand results in the first week of March, and none else.
	march := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	count := func(_ context.Context, w extract.Window) (int64, error) {
		from, to := max(0, int(w.From.Sub(march)/time.Hour)), min(168, int(w.To.Sub(march)/time.Hour))
		return int64(max(0, to-from)) * 30, nil
	}
	year := extract.Window{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	plan, err := extract.NewPlan(context.Background(), extract.Range{Window: year, Target: 3000}, count)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range plan.Windows {
		fmt.Println(w.Window, w.Count)
	}
	fmt.Println(plan.Requests, "counts,", plan.Pages(), "pages")
	// Output:
	// 2026-01-01 00:00:00/2026-07-01 00:00:00 5040
	// 2026-07-01 00:00:00/2027-01-01 00:00:00 0
	// 2 counts, 51 pages
}
