package formservice

import (
	"flag"
	"fmt"
	"io"
	"reflect"
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
//
// The tags give each fault the name that ParseFaults knows, what it does, and where it is
// one of several words, these.
type Faults struct {
	Seed uint64 `fault:"seed" help:"seed of the rates"`

	Busy       float64       `fault:"busy" help:"rate of busy answers (error 3)"`
	BusyFirst  int           `fault:"busy-first" help:"so many busy answers first"`
	BusyStatus int           `fault:"busy-status" help:"their HTTP status: 200, 429 or 503 (default 503, v2: 429)" one:"200 429 503"`
	RetryAfter int           `fault:"retry-after" help:"their Retry-After in seconds (default none)"`
	HTML       float64       `fault:"html" help:"rate of HTML pages"`
	HTMLStatus int           `fault:"html-status" help:"their HTTP status (default 502)"`
	Empty      float64       `fault:"empty" help:"rate of empty bodies"`
	Cut        float64       `fault:"cut" help:"rate of connections closed in mid-body"`
	Truncate   float64       `fault:"truncate" help:"rate of bodies whose XML ends in the middle"`
	Reset      float64       `fault:"reset" help:"rate of connections closed without an answer"`
	Slow       float64       `fault:"slow" help:"rate of bodies that come in pieces"`
	SlowDelay  time.Duration `fault:"slow-delay" help:"the pause between the pieces (default 10ms)"`
	Redirect   float64       `fault:"redirect" help:"rate of redirects to another host"`
	RedirectTo string        `fault:"redirect-to" help:"that host (default https://elsewhere.invalid)"`

	Latency   time.Duration `fault:"latency" help:"pause before every answer"`
	Capacity  int           `fault:"capacity" help:"most requests at once, the others are busy"`
	PerMinute int           `fault:"per-minute" help:"most requests a minute, the others get 429"`

	InsertEvery int `fault:"insert-every" help:"insert a result before every n-th request for results"`
	EditEvery   int `fault:"edit-every" help:"edit a result before every n-th"`
	DeleteEvery int `fault:"delete-every" help:"delete a result before every n-th"`
	FinishEvery int `fault:"finish-every" help:"finish an unfinished result before every n-th"`

	StrictLimit     bool   `fault:"strict-limit" help:"refuse the highest limit (100, v2: 500)"`
	BareMaxMidnight bool   `fault:"bare-max-midnight" help:"fs_max_date without a time means 00:00:00"`
	OldRoot         bool   `fault:"old-root" help:"root element fs_result"`
	Errors200       bool   `fault:"errors-200" help:"error envelopes with HTTP 200"`
	Latin1          bool   `fault:"latin1" help:"v1: ISO-8859-1"`
	Control         string `fault:"control" help:"forbidden characters: raw or ref (default U+FFFD)" one:"raw ref"`
	Headings        string `fault:"headings" help:"form of the headings: id, nested or items" one:"id nested items"`
	NoGzip          bool   `fault:"no-gzip" help:"never compress"`
	PageCap         int    `fault:"page-cap" help:"most results on a page"`
	CutPages        int    `fault:"cut-pages" help:"send n results of a page at most, while pages and headers follow what was asked"`
	Page504         int    `fault:"page-504" help:"HTTP 504 for a page of more than n results"`

	IgnoreMinID     bool `fault:"ignore-min-id" help:"ignore fs_min_id"`
	IgnoreMaxID     bool `fault:"ignore-max-id" help:"ignore fs_max_id"`
	IgnoreDates     bool `fault:"ignore-dates" help:"ignore fs_min_date and fs_max_date"`
	IgnoreMinDate   bool `fault:"ignore-min-date" help:"ignore fs_min_date"`
	IgnoreMaxDate   bool `fault:"ignore-max-date" help:"ignore fs_max_date"`
	IgnorePage      bool `fault:"ignore-page" help:"ignore fs_page"`
	IgnoreDirection bool `fault:"ignore-direction" help:"ignore fs_sort_direction"`
	IgnoreSearch    bool `fault:"ignore-search" help:"ignore searches"`
	IgnoreSort      bool `fault:"ignore-sort" help:"ignore fs_sort"`
	ByDate          bool `fault:"by-date" help:"order by date_finish where the order of ids was asked for"`

	CountAll bool `fault:"count-all" help:"counts, and headers of v2, are those of the whole form"`
	CountOff int  `fault:"count-off" help:"counts, and headers of v2, are off by n results, like -1"`

	Twice     int  `fault:"twice" help:"results whose id is a multiple of n come twice on a page"`
	TwiceOnce int  `fault:"twice-once" help:"the first result whose id is a multiple of n comes twice, on one page alone"`
	Unsorted  bool `fault:"unsorted" help:"the results of a page come in no order"`

	LackUpdate int           `fault:"lack-update" help:"results whose id is a multiple of n show no date_update (1: all)"`
	ClockOff   time.Duration `fault:"clock-off" help:"the clock of date_update is off by so much, like -5m"`

	DateHeaderOff time.Duration `fault:"date-header-off" help:"the header Date is off by so much, like -1h"`
	NoDateHeader  bool          `fault:"no-date-header" help:"no header Date"`

	V2 V2Shapes

	repeated *atomic.Bool // a result came twice for TwiceOnce; nil: these faults are no server's
}

// V2Shapes are the shapes of API v2 that are unknown or differ between
// accounts. The zero value is what the newest samples show.
type V2Shapes struct {
	NumberIDs    bool   `fault:"v2-number-ids" help:"v2: result ids are JSON numbers"`
	NumberMetas  bool   `fault:"v2-number-metas" help:"v2: payment_amount and score are JSON numbers"`
	Fractions    string `fault:"v2-fractions" help:"v2: fractions of seconds: none or random (default .000)" one:"none random"`
	Seconds      bool   `fault:"v2-seconds" help:"v2: date bounds are compared by the second"`
	CoarseBounds bool   `fault:"v2-coarse-bounds" help:"v2: date bounds lose their fraction, and dates keep it"`
	StrictDates  bool   `fault:"v2-strict-dates" help:"v2: refuse date bounds with fractions of seconds or before 1970"`
	Pagination   string `fault:"v2-pagination" help:"v2: headers of the pages: missing, zero, more or less" one:"missing zero more less"`
	ClampLimit   bool   `fault:"v2-clamp-limit" help:"v2: lower a limit that is too high"`
	HideID       bool   `fault:"v2-hide-id" help:"v2: a view of some columns hides the id unless it names result_id"`
	OwnPositions bool   `fault:"v2-own-positions" help:"v2: each item of a matrix has its own position"`
	MixValues    bool   `fault:"v2-mix-values" help:"v2: the values of an answer come in any order"`
	BareForm     bool   `fault:"v2-bare-form" help:"v2: Get Form answers without a list around the form"`
	SnakeStats   bool   `fault:"v2-snake-stats" help:"v2: results_count and files_size"`
}

// each calls visit with the tags and a pointer to the value of every field that has a name.
func (f *Faults) each(visit func(tag reflect.StructTag, value any)) {
	for _, fields := range []reflect.Value{reflect.ValueOf(f).Elem(), reflect.ValueOf(&f.V2).Elem()} {
		for i := range fields.NumField() {
			if tag := fields.Type().Field(i).Tag; tag != "" {
				visit(tag, fields.Field(i).Addr().Interface())
			}
		}
	}
}

// flags binds every field to its name. The flag package reads and prints them.
func (f *Faults) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("faults", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	f.each(func(tag reflect.StructTag, value any) {
		name, help := tag.Get("fault"), tag.Get("help")
		switch v := value.(type) {
		case *uint64:
			fs.Uint64Var(v, name, *v, help)
		case *float64:
			fs.Float64Var(v, name, *v, help)
		case *int:
			fs.IntVar(v, name, *v, help)
		case *bool:
			fs.BoolVar(v, name, *v, help)
		case *string:
			fs.StringVar(v, name, *v, help)
		case *time.Duration:
			fs.DurationVar(v, name, *v, help)
		}
	})
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
func (f Faults) Validate() (err error) {
	f.each(func(tag reflect.StructTag, value any) {
		name, known := tag.Get("fault"), tag.Get("one")
		field := reflect.ValueOf(value).Elem()
		text := fmt.Sprint(field)
		switch {
		case err != nil:
		case field.CanFloat() && !(field.Float() >= 0 && field.Float() <= 1): // NaN too
			err = fmt.Errorf("faults: %s=%s is not a rate from 0 to 1", name, text)
		case field.CanInt() && field.Int() < 0 && !strings.HasSuffix(name, "-off"): // what is off may be off either way
			err = fmt.Errorf("faults: %s=%s is below 0", name, text)
		case known != "" && text != "" && text != "0" && !slices.Contains(strings.Fields(known), text):
			err = fmt.Errorf("faults: %s=%s; give %s", name, text, strings.ReplaceAll(known, " ", " or "))
		}
	})
	if err == nil && f.HTMLStatus != 0 && (f.HTMLStatus < 200 || f.HTMLStatus > 599) {
		err = fmt.Errorf("faults: html-status=%d; give a status from 200 to 599", f.HTMLStatus)
	}
	return err
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
