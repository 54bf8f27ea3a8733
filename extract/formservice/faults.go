package formservice

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Fault is something that is done to one request instead of, or with, its
// right answer.
type Fault string

// The faults of single requests.
const (
	NoFault       Fault = ""
	FaultBusy     Fault = "busy"     // error 3 with BusyStatus
	FaultHTML     Fault = "html"     // HTMLStatus with a page of a proxy
	FaultCut      Fault = "cut"      // the connection is closed in mid-body
	FaultTruncate Fault = "truncate" // well-framed, but the XML ends in the middle
	FaultSlow     Fault = "slow"     // the body comes in pieces, SlowDelay apart
	FaultRedirect Fault = "redirect" // 302 to RedirectTo, with the whole query
	FaultEmpty    Fault = "empty"    // HTTP 200 without a body
	FaultReset    Fault = "reset"    // the connection is closed without an answer; Go's client asks again on a kept one
)

// Faults tell how the service misbehaves. The zero value misbehaves nowhere.
//
// The rates are chances from 0 to 1, decided by a hash of Seed and the
// request's number: the same requests in the same order meet the same faults.
type Faults struct {
	Seed uint64

	Busy       float64
	BusyFirst  int // so many requests are busy before anything else
	BusyStatus int // 200, 429 or 503; 0: 503, of API v2 429
	RetryAfter int // seconds for the Retry-After header of busy answers; 0: no header
	HTML       float64
	HTMLStatus int // its HTTP status; 0: 502
	Empty      float64
	Cut        float64
	Truncate   float64
	Reset      float64
	Slow       float64
	SlowDelay  time.Duration // 0: 10 ms
	Redirect   float64
	RedirectTo string // "": https://elsewhere.invalid

	Latency   time.Duration // before every answer
	Capacity  int           // most requests at once, the others are busy; 0: no bound
	PerMinute int           // most requests in 60 s, the others get 429; 0: no bound

	InsertEvery int // before every n-th Get Results or Count a result is inserted; 0: never
	EditEvery   int // … edited
	DeleteEvery int // … deleted
	FinishEvery int // … an unfinished one finished

	StrictLimit     bool   // fs_limit=100 is refused, of API v2 limit=500
	BareMaxMidnight bool   // fs_max_date without a time means 00:00:00
	OldRoot         bool   // fs_result; API v2 has none
	Errors200       bool   // error envelopes come with HTTP 200
	Latin1          bool   // ISO-8859-1
	Control         string // forbidden characters: raw, ref (&#11;); "": U+FFFD
	Headings        string // "id": id= for for=; "nested": under metas and items; "items": none of metas
	NoGzip          bool
	PageCap         int // most results on a page whatever was asked, which the pages and headers follow; 0: 100
	CutPages        int // most results of a page that are sent, while pages and headers are those that were asked for
	Page504         int // a page of more results is answered with HTTP 504 and a proxy's page

	IgnoreMinID     bool
	IgnoreMaxID     bool
	IgnoreDates     bool
	IgnoreMinDate   bool
	IgnoreMaxDate   bool
	IgnorePage      bool // every page is the first
	IgnoreDirection bool // always desc
	IgnoreSearch    bool
	IgnoreSort      bool // always by id
	ByDate          bool // by date_finish where the order of ids was asked for

	CountAll bool // counts, and the headers of API v2, are those of the whole form
	CountOff int  // added to them; may be negative

	Twice       int    // results whose id is a multiple of it come twice on a page; 0: none
	TwiceOnce   int    // the first of them comes twice, on one page alone
	Unsorted    bool   // the results of a page come in no order
	ContentType string // of answers with HTTP 200; "": the right one

	LackUpdate int           // so many ids apart a result is answered, sorted and searched without its date_update; 1: all; 0: none
	ClockOff   time.Duration // added to the clocks of the server's forms, from its first request on; may be negative

	DateHeaderOff time.Duration // added to the header Date; may be negative
	NoDateHeader  bool

	V2 V2Shapes

	repeated *atomic.Bool // a result came twice for TwiceOnce; nil: these faults are no server's
}

// V2Shapes are the shapes of API v2 that are unknown or differ between
// accounts. The zero value is what the newest samples show.
type V2Shapes struct {
	NumberIDs    bool   // result ids are JSON numbers
	NumberMetas  bool   // payment_amount and score are JSON numbers
	Fractions    string // of a second, in dates: "none" 2026-01-05T17:26:24Z, "" …24.000Z, "random" …24.087Z, by the result's id
	Seconds      bool   // date bounds are compared by the second
	CoarseBounds bool   // date bounds lose their fraction, and dates keep it
	StrictDates  bool   // date bounds with a fraction of a second, or before 1970, are refused
	Pagination   string // headers: "missing", "zero" the last page is 0, "more" one too many, "less" one too few; "": right
	ClampLimit   bool   // a limit that is too high is lowered, not refused
	HideID       bool   // a view of some columns shows an id only if it names result_id
	FillItems    bool   // items without an answer are shown empty
	OwnPositions bool   // each item of a matrix has its own position
	MixValues    bool   // the values of an answer come in any order
	BareForm     bool   // Get Form answers without a list around the form
	SnakeStats   bool   // results_count and files_size
}

// flags binds every field to its name. The flag package reads and prints them.
func (f *Faults) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("faults", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Uint64Var(&f.Seed, "seed", f.Seed, "seed of the rates")
	fs.Float64Var(&f.Busy, "busy", f.Busy, "rate of busy answers (error 3)")
	fs.IntVar(&f.BusyFirst, "busy-first", f.BusyFirst, "so many busy answers first")
	fs.IntVar(&f.BusyStatus, "busy-status", f.BusyStatus, "their HTTP status: 200, 429 or 503 (default 503, v2: 429)")
	fs.IntVar(&f.RetryAfter, "retry-after", f.RetryAfter, "their Retry-After in seconds (default none)")
	fs.Float64Var(&f.HTML, "html", f.HTML, "rate of HTML pages")
	fs.IntVar(&f.HTMLStatus, "html-status", f.HTMLStatus, "their HTTP status (default 502)")
	fs.Float64Var(&f.Empty, "empty", f.Empty, "rate of empty bodies")
	fs.Float64Var(&f.Cut, "cut", f.Cut, "rate of connections closed in mid-body")
	fs.Float64Var(&f.Truncate, "truncate", f.Truncate, "rate of bodies whose XML ends in the middle")
	fs.Float64Var(&f.Reset, "reset", f.Reset, "rate of connections closed without an answer")
	fs.Float64Var(&f.Slow, "slow", f.Slow, "rate of bodies that come in pieces")
	fs.DurationVar(&f.SlowDelay, "slow-delay", f.SlowDelay, "the pause between the pieces (default 10ms)")
	fs.Float64Var(&f.Redirect, "redirect", f.Redirect, "rate of redirects to another host")
	fs.StringVar(&f.RedirectTo, "redirect-to", f.RedirectTo, "that host (default https://elsewhere.invalid)")
	fs.DurationVar(&f.Latency, "latency", f.Latency, "pause before every answer")
	fs.IntVar(&f.Capacity, "capacity", f.Capacity, "most requests at once, the others are busy")
	fs.IntVar(&f.PerMinute, "per-minute", f.PerMinute, "most requests a minute, the others get 429")
	fs.IntVar(&f.InsertEvery, "insert-every", f.InsertEvery, "insert a result before every n-th request for results")
	fs.IntVar(&f.EditEvery, "edit-every", f.EditEvery, "edit a result before every n-th")
	fs.IntVar(&f.DeleteEvery, "delete-every", f.DeleteEvery, "delete a result before every n-th")
	fs.IntVar(&f.FinishEvery, "finish-every", f.FinishEvery, "finish an unfinished result before every n-th")
	fs.BoolVar(&f.StrictLimit, "strict-limit", f.StrictLimit, "refuse the highest limit (100, v2: 500)")
	fs.BoolVar(&f.BareMaxMidnight, "bare-max-midnight", f.BareMaxMidnight, "fs_max_date without a time means 00:00:00")
	fs.BoolVar(&f.OldRoot, "old-root", f.OldRoot, "root element fs_result")
	fs.BoolVar(&f.Errors200, "errors-200", f.Errors200, "error envelopes with HTTP 200")
	fs.BoolVar(&f.Latin1, "latin1", f.Latin1, "ISO-8859-1")
	fs.StringVar(&f.Control, "control", f.Control, "forbidden characters: raw or ref (default U+FFFD)")
	fs.StringVar(&f.Headings, "headings", f.Headings, "form of the headings: id, nested or items")
	fs.BoolVar(&f.NoGzip, "no-gzip", f.NoGzip, "never compress")
	fs.IntVar(&f.PageCap, "page-cap", f.PageCap, "most results on a page")
	fs.IntVar(&f.CutPages, "cut-pages", f.CutPages, "send n results of a page at most, while pages and headers follow what was asked")
	fs.IntVar(&f.Page504, "page-504", f.Page504, "HTTP 504 for a page of more than n results")
	fs.BoolVar(&f.IgnoreMinID, "ignore-min-id", f.IgnoreMinID, "ignore fs_min_id")
	fs.BoolVar(&f.IgnoreMaxID, "ignore-max-id", f.IgnoreMaxID, "ignore fs_max_id")
	fs.BoolVar(&f.IgnoreDates, "ignore-dates", f.IgnoreDates, "ignore fs_min_date and fs_max_date")
	fs.BoolVar(&f.IgnoreMinDate, "ignore-min-date", f.IgnoreMinDate, "ignore fs_min_date")
	fs.BoolVar(&f.IgnoreMaxDate, "ignore-max-date", f.IgnoreMaxDate, "ignore fs_max_date")
	fs.BoolVar(&f.IgnorePage, "ignore-page", f.IgnorePage, "ignore fs_page")
	fs.BoolVar(&f.IgnoreDirection, "ignore-direction", f.IgnoreDirection, "ignore fs_sort_direction")
	fs.BoolVar(&f.IgnoreSearch, "ignore-search", f.IgnoreSearch, "ignore searches")
	fs.BoolVar(&f.IgnoreSort, "ignore-sort", f.IgnoreSort, "ignore fs_sort")
	fs.BoolVar(&f.ByDate, "by-date", f.ByDate, "order by date_finish where the order of ids was asked for")
	fs.BoolVar(&f.CountAll, "count-all", f.CountAll, "counts, and headers of v2, are those of the whole form")
	fs.IntVar(&f.CountOff, "count-off", f.CountOff, "counts, and headers of v2, are off by n results, like -1")
	fs.IntVar(&f.LackUpdate, "lack-update", f.LackUpdate, "results whose id is a multiple of n show no date_update (1: all)")
	fs.IntVar(&f.Twice, "twice", f.Twice, "results whose id is a multiple of n come twice on a page")
	fs.IntVar(&f.TwiceOnce, "twice-once", f.TwiceOnce, "the first result whose id is a multiple of n comes twice, on one page alone")
	fs.BoolVar(&f.Unsorted, "unsorted", f.Unsorted, "the results of a page come in no order")
	fs.StringVar(&f.ContentType, "content-type", f.ContentType, "Content-Type of answers with HTTP 200")
	fs.BoolVar(&f.V2.NumberIDs, "v2-number-ids", f.V2.NumberIDs, "v2: result ids are JSON numbers")
	fs.BoolVar(&f.V2.NumberMetas, "v2-number-metas", f.V2.NumberMetas, "v2: payment_amount and score are JSON numbers")
	fs.StringVar(&f.V2.Fractions, "v2-fractions", f.V2.Fractions, "v2: fractions of seconds: none or random (default .000)")
	fs.BoolVar(&f.V2.Seconds, "v2-seconds", f.V2.Seconds, "v2: date bounds are compared by the second")
	fs.BoolVar(&f.V2.CoarseBounds, "v2-coarse-bounds", f.V2.CoarseBounds, "v2: date bounds lose their fraction, and dates keep it")
	fs.BoolVar(&f.V2.StrictDates, "v2-strict-dates", f.V2.StrictDates, "v2: refuse date bounds with fractions of seconds or before 1970")
	fs.StringVar(&f.V2.Pagination, "v2-pagination", f.V2.Pagination, "v2: headers of the pages: missing, zero, more or less")
	fs.BoolVar(&f.V2.ClampLimit, "v2-clamp-limit", f.V2.ClampLimit, "v2: lower a limit that is too high")
	fs.BoolVar(&f.V2.HideID, "v2-hide-id", f.V2.HideID, "v2: a view of some columns hides the id unless it names result_id")
	fs.BoolVar(&f.V2.FillItems, "v2-fill-items", f.V2.FillItems, "v2: show items without an answer as empty")
	fs.BoolVar(&f.V2.OwnPositions, "v2-own-positions", f.V2.OwnPositions, "v2: each item of a matrix has its own position")
	fs.BoolVar(&f.V2.MixValues, "v2-mix-values", f.V2.MixValues, "v2: the values of an answer come in any order")
	fs.BoolVar(&f.V2.BareForm, "v2-bare-form", f.V2.BareForm, "v2: Get Form answers without a list around the form")
	fs.BoolVar(&f.V2.SnakeStats, "v2-snake-stats", f.V2.SnakeStats, "v2: results_count and files_size")
	fs.DurationVar(&f.ClockOff, "clock-off", f.ClockOff, "the clock of date_update is off by so much, like -5m")
	fs.DurationVar(&f.DateHeaderOff, "date-header-off", f.DateHeaderOff, "the header Date is off by so much, like -1h")
	fs.BoolVar(&f.NoDateHeader, "no-date-header", f.NoDateHeader, "no header Date")
	return fs
}

// ParseFaults reads a list like "busy=0.2,busy-status=429,old-root". An
// unknown name or a value that does not fit is an error that names it.
func ParseFaults(list string) (Faults, error) {
	var f Faults
	fs := f.flags()
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, value, given := strings.Cut(part, "=")
		if !given {
			value = "true"
		}
		if fs.Lookup(name) == nil {
			return Faults{}, fmt.Errorf("faults: unknown fault %q; known are %s", name, strings.Join(faultNames(fs), ", "))
		}
		if err := fs.Set(name, value); err != nil {
			return Faults{}, fmt.Errorf("faults: %s=%s: %w", name, value, err)
		}
	}
	return f, f.Validate()
}

func faultNames(fs *flag.FlagSet) []string {
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// Validate names the first value that has no meaning.
func (f Faults) Validate() error {
	for _, r := range f.rates() {
		if !(r.rate >= 0 && r.rate <= 1) { // NaN too
			return fmt.Errorf("faults: %s=%v is not a rate from 0 to 1", r.fault, r.rate)
		}
	}
	if !slices.Contains([]int{0, 200, 429, 503}, f.BusyStatus) {
		return fmt.Errorf("faults: busy-status=%d; give 200, 429 or 503", f.BusyStatus)
	}
	if f.HTMLStatus != 0 && (f.HTMLStatus < 200 || f.HTMLStatus > 599) {
		return fmt.Errorf("faults: html-status=%d; give a status from 200 to 599", f.HTMLStatus)
	}
	for _, word := range []struct {
		name, value string
		known       []string
	}{
		{"control", f.Control, []string{"raw", "ref"}},
		{"headings", f.Headings, []string{"id", "nested", "items"}},
		{"v2-fractions", f.V2.Fractions, []string{"none", "random"}},
		{"v2-pagination", f.V2.Pagination, []string{"missing", "zero", "more", "less"}},
	} {
		if word.value != "" && !slices.Contains(word.known, word.value) {
			return fmt.Errorf("faults: %s=%s; give %s", word.name, word.value, strings.Join(word.known, " or "))
		}
	}
	for _, n := range []int{
		f.BusyFirst, f.RetryAfter, f.Capacity, f.PerMinute, f.InsertEvery, f.EditEvery, f.DeleteEvery,
		f.FinishEvery, f.PageCap, f.CutPages, f.Page504, f.LackUpdate, f.Twice, f.TwiceOnce, int(f.Latency), int(f.SlowDelay),
	} {
		if n < 0 {
			return fmt.Errorf("faults: a number below 0")
		}
	}
	return nil
}

// String is the list that ParseFaults reads; "" for the zero value.
func (f Faults) String() string {
	var zero Faults
	defaults := zero.flags()
	var parts []string
	f.flags().VisitAll(func(fl *flag.Flag) {
		if value := fl.Value.String(); value != defaults.Lookup(fl.Name).Value.String() {
			parts = append(parts, fl.Name+"="+value)
		}
	})
	return strings.Join(parts, ",")
}

// FaultsHelp describes every name that ParseFaults knows, one on a line.
func FaultsHelp() string {
	var f Faults
	var b strings.Builder
	f.flags().VisitAll(func(fl *flag.Flag) { fmt.Fprintf(&b, "  %-18s %s\n", fl.Name, fl.Usage) })
	return b.String()
}

// rates are the chances of the faults, the first to be tried first.
func (f Faults) rates() []rate {
	return []rate{
		{f.Busy, FaultBusy},
		{f.HTML, FaultHTML},
		{f.Redirect, FaultRedirect},
		{f.Cut, FaultCut},
		{f.Truncate, FaultTruncate},
		{f.Reset, FaultReset},
		{f.Slow, FaultSlow},
		{f.Empty, FaultEmpty},
	}
}

type rate struct {
	rate  float64
	fault Fault
}

// decide tells what happens to request n, counted from 1.
func (f Faults) decide(n int) Fault {
	if n <= f.BusyFirst {
		return FaultBusy
	}
	for i, r := range f.rates() {
		if chance(mix(mix(f.Seed, uint64(i)), uint64(n))) < r.rate {
			return r.fault
		}
	}
	return NoFault
}

// chance maps a hash to [0, 1).
func chance(h uint64) float64 { return float64(h>>11) / (1 << 53) }

// bend changes a query as the Ignore faults and the page's cap ask.
func (f Faults) bend(q *resultsQuery) {
	fresh := newResultsQuery()
	if f.IgnoreMinID {
		q.minID = fresh.minID
	}
	if f.IgnoreMaxID {
		q.maxID = fresh.maxID
	}
	if f.IgnoreDates {
		q.dated = false
	}
	if f.IgnoreMinDate {
		q.after = fresh.after
	}
	if f.IgnoreMaxDate {
		q.before = fresh.before
	}
	q.dated = q.dated && (q.after != fresh.after || q.before != fresh.before)
	if f.IgnorePage {
		q.page = 1
	}
	if f.IgnoreDirection {
		q.desc = true
	}
	if f.IgnoreSort {
		q.sort = sortByID
	}
	if f.ByDate && q.sort == sortByID {
		q.sort = metaFinish
	}
	q.lack, q.twice, q.unsorted, q.most = f.LackUpdate, f.twice, f.Unsorted, f.CutPages
	if f.IgnoreSearch {
		q.where = nil
	}
	if f.PageCap > 0 {
		q.limit = min(q.limit, f.PageCap)
	}
}

// twice tells whether the result of that id, which is sent now, comes once more.
func (f Faults) twice(id int64) bool {
	return f.Twice > 0 && id%int64(f.Twice) == 0 ||
		f.TwiceOnce > 0 && id%int64(f.TwiceOnce) == 0 && f.repeated.CompareAndSwap(false, true)
}

// told is what the service says of a count n.
func (f Faults) told(n int, form *Form) int {
	if f.CountAll {
		n = len(form.stored.records)
	}
	return max(0, n+f.CountOff)
}
