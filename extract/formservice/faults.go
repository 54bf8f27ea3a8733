package formservice

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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
	FaultBusy     Fault = "busy"     // error 3 with busy-status
	FaultHTML     Fault = "html"     // html-status with a page of a proxy
	FaultCut      Fault = "cut"      // the connection is closed in mid-body
	FaultTruncate Fault = "truncate" // well-framed, but the XML ends in the middle
	FaultSlow     Fault = "slow"     // the body comes in pieces, slow-delay apart
	FaultRedirect Fault = "redirect" // 302 to redirect-to, with the whole query
	FaultEmpty    Fault = "empty"    // HTTP 200 without a body
	FaultReset    Fault = "reset"    // the connection is closed without an answer; Go's client asks again on a kept one

	// Of files, which know of the others busy, cut and redirect.
	FaultMissing Fault = "missing" // 404
	FaultLogin   Fault = "login"   // 200 with a page to log in at, in place of the file
	FaultChange  Fault = "change"  // the file has other bytes from now on
)

// Faults tell how the service misbehaves: names and values of the table of faults, in the
// form of formserver's --faults: "busy=0.2,busy-status=429,old-root". Of a name that comes
// twice the last one counts. "" misbehaves nowhere.
//
// Rates are chances from 0 to 1, decided by a hash of seed and the request's number, or of seed
// and a file's name: the same requests in the same order meet the same faults.
type Faults string

// What the values of faults are, besides one of several words.
const (
	aFlag     = "flag"
	aRate     = "a rate from 0 to 1"
	aNumber   = "a number, 0 or more"
	aSeed     = "a seed"
	aStatus   = "a status from 200 to 599"
	anOffset  = "a whole number"
	aSpan     = "a duration, 0 or more"
	aShift    = "a duration"
	anAddress = "an address"
)

// table is the faults that there are: the name, what the value is, and what it does.
var table = []struct{ name, takes, help string }{
	{"seed", aSeed, "seed of the faults (default: that of -seed)"},

	// On requests of a chance, in the order in which they are tried.
	{"busy", aRate, "rate of busy answers (error 3)"},
	{"html", aRate, "rate of HTML pages in place of an answer"},
	{"redirect", aRate, "rate of redirects to another host"},
	{"cut", aRate, "rate of connections closed in the middle of the body"},
	{"truncate", aRate, "rate of bodies whose XML ends in the middle"},
	{"reset", aRate, "rate of connections closed without an answer"},
	{"slow", aRate, "rate of answers whose body comes in pieces, with pauses"},
	{"empty", aRate, "rate of answers with HTTP 200 and no body"},

	// On files of a chance, by their names, in the order in which they are tried; then on
	// requests for files.
	{"file-missing", aRate, "rate of missing files (404)"},
	{"file-login", aRate, "rate of files with a login page in their place (200)"},
	{"file-redirect", aRate, "rate of files that redirect to another host"},
	{"file-unsized", aRate, "rate of files without length, ETag and ranges"},
	{"file-busy", aRate, "rate of busy answers to requests for files"},
	{"file-change", aRate, "rate of requests after which a file has other bytes"},
	{"file-cut", aRate, "rate of requests for files that are cut in the middle of the body"},

	// On the first requests, and on every n-th.
	{"busy-first", aNumber, "answer the first n requests as busy"},
	{"insert-every", aNumber, "insert a result before every n-th request for results"},
	{"edit-every", aNumber, "edit a result before every n-th request"},
	{"delete-every", aNumber, "delete a result before every n-th request"},

	// On requests beyond a bound.
	{"per-minute", aNumber, "most requests a minute; the others get 429"},
	{"page-504", aNumber, "HTTP 504 for a page of more than n results"},

	// On all requests: how it answers.
	{"busy-status", "200|429|503", "HTTP status of busy answers (default 503, v2: 429)"},
	{"retry-after", aNumber, "Retry-After of busy answers in seconds (default none)"},
	{"html-status", aStatus, "HTTP status of HTML pages (default 502)"},
	{"slow-delay", aSpan, "pause between the pieces of slow (default 10ms)"},
	{"redirect-to", anAddress, "host of redirect (default https://elsewhere.invalid)"},
	{"latency", aSpan, "pause before every answer (default: -latency)"},
	{"no-gzip", aFlag, "never compress"},
	{"date-header-off", aShift, "how much the header Date is off, like -1h"},
	{"old-root", aFlag, "v1: name the root element fs_result, not fs_response"},
	{"errors-200", aFlag, "send errors with HTTP 200"},
	{"latin1", aFlag, "v1: answer in ISO-8859-1, not UTF-8"},
	{"control", "raw|ref", "how to send characters that XML forbids: as they are, or as references (default: as U+FFFD)"},
	{"headings", "id|nested|items", "v1: name headings by the attribute id, nest them in groups, or send those of items alone"},

	// What of a request it ignores, or takes in another way.
	{"strict-limit", aFlag, "refuse the highest limit (100, v2: 500)"},
	{"bare-max-midnight", aFlag, "fs_max_date without a time means 00:00:00"},
	{"ignore-min-id", aFlag, "ignore fs_min_id"},
	{"ignore-max-id", aFlag, "ignore fs_max_id"},
	{"ignore-dates", aFlag, "ignore fs_min_date and fs_max_date"},
	{"ignore-min-date", aFlag, "ignore fs_min_date"},
	{"ignore-max-date", aFlag, "ignore fs_max_date"},
	{"ignore-page", aFlag, "ignore fs_page"},
	{"ignore-direction", aFlag, "ignore fs_sort_direction"},
	{"ignore-sort", aFlag, "ignore fs_sort"},
	{"by-date", aFlag, "order by date_finish when the order of ids was requested"},

	// Which results it tells of.
	{"page-cap", aNumber, "most results on a page"},
	{"cut-pages", aNumber, "send at most n results of a page; pages and headers follow what was requested"},
	{"count-all", aFlag, "counts, and v2's headers, are those of the whole form, even if a range is asked for"},
	{"count-off", anOffset, "counts and headers of v2 are off by n results, like -1"},
	{"twice", aNumber, "results whose id is a multiple of n come twice on a page"},
	{"twice-once", aNumber, "the first result whose id is a multiple of n comes twice, on one page only"},
	{"unsorted", aFlag, "the results of a page come in no order"},
	{"lack-update", aNumber, "results whose id is a multiple of n show no date_update (1: all)"},

	// Shapes of API v2 that are unknown or differ between accounts. Without them it answers
	// as the newest samples do.
	{"v2-number-ids", aFlag, "v2: result ids are JSON numbers"},
	{"v2-number-metas", aFlag, "v2: payment_amount and score are JSON numbers"},
	{"v2-fractions", "none|random", "v2: fractions of seconds (default .000)"},
	{"v2-seconds", aFlag, "v2: date bounds are compared by the second"},
	{"v2-coarse-bounds", aFlag, "v2: date bounds lose their fraction, and dates keep it"},
	{"v2-strict-dates", aFlag, "v2: refuse date bounds with fractions of seconds or before 1970"},
	{"v2-pagination", "missing|zero|more|less", "v2: headers of the pages"},
	{"v2-clamp-limit", aFlag, "v2: lower a limit that is too high"},
	{"v2-own-positions", aFlag, "v2: each item of a matrix has its own position"},
	{"v2-mix-values", aFlag, "v2: the values of an answer come in any order"},
	{"v2-bare-form", aFlag, "v2: Get Form answers without a list around the form"},
	{"v2-snake-stats", aFlag, "v2: results_count in place of resultsCount"},
}

// fits tells whether a fault may have a value.
func fits(takes, value string) bool {
	n, noNumber := strconv.Atoi(value)
	d, noSpan := time.ParseDuration(value)
	switch takes {
	case aFlag:
		return value == "true" || value == "false"
	case aRate:
		rate, err := strconv.ParseFloat(value, 64)
		return err == nil && rate >= 0 && rate <= 1
	case aNumber:
		return noNumber == nil && n >= 0
	case aSeed:
		_, err := strconv.ParseUint(value, 10, 64)
		return err == nil
	case aStatus:
		return noNumber == nil && n >= 200 && n <= 599
	case anOffset:
		return noNumber == nil
	case aSpan:
		return noSpan == nil && d >= 0
	case aShift:
		return noSpan == nil
	case anAddress:
		return true
	}
	return slices.Contains(strings.Split(takes, "|"), value)
}

// With returns the list with one more fault.
func (f Faults) With(name string, value any) Faults {
	return f + Faults(fmt.Sprintf(",%s=%v", name, value))
}

// Value returns the value of a fault, "" without one.
func (f Faults) Value(name string) string {
	read, err := f.read()
	if err != nil {
		panic(err)
	}
	return read.text(name)
}

// Validate names the first fault that is unknown, or whose value does not fit.
func (f Faults) Validate() error {
	_, err := f.read()
	return err
}

// read reads the list.
func (f Faults) read() (*faults, error) {
	read := &faults{values: make(map[string]string)}
	names := make([]string, len(table))
	for i, known := range table {
		read.values[known.name], names[i] = "", known.name
	}
	for part := range strings.SplitSeq(string(f), ",") {
		name, value, given := strings.Cut(strings.TrimSpace(part), "=")
		at := slices.Index(names, name)
		switch {
		case name == "" && !given:
			continue
		case at < 0:
			return nil, fmt.Errorf("faults: unknown fault %q; use %s", name, strings.Join(names, ", "))
		case !given:
			value = "true"
		}
		if takes := table[at].takes; value != "" && !fits(takes, value) {
			return nil, fmt.Errorf("faults: %s=%s; give %s", name, value, takes)
		}
		read.values[name] = value
	}
	return read, nil
}

// FaultsHelp describes every fault, one on a line.
func FaultsHelp() string {
	var b strings.Builder
	for _, f := range table {
		fmt.Fprintf(&b, "  %-18s %s (%s)\n", f.name, f.help, f.takes)
	}
	return b.String()
}

// faults are Faults that were read.
type faults struct {
	values   map[string]string // by name, "" for what is not given
	repeated atomic.Bool       // a result came twice for twice-once
}

// text returns the value of a fault, "" without one.
func (f *faults) text(name string) string {
	value, known := f.values[name]
	if !known {
		panic("there is no fault " + name)
	}
	return value
}

// on tells whether a fault without a value is set.
func (f *faults) on(name string) bool { return f.text(name) == "true" }

// number returns the value of a fault that is a number, 0 without one.
func (f *faults) number(name string) int {
	n, _ := strconv.Atoi(f.text(name))
	return n
}

// span returns the value of a fault that is a duration, 0 without one.
func (f *faults) span(name string) time.Duration {
	d, _ := time.ParseDuration(f.text(name))
	return d
}

// seed returns the seed of the rates.
func (f *faults) seed() uint64 {
	seed, _ := strconv.ParseUint(f.text("seed"), 10, 64)
	return seed
}

// decide tells what happens to request n, counted from 1.
func (f *faults) decide(n int) Fault {
	if n <= f.number("busy-first") {
		return FaultBusy
	}
	return f.first("", 0, uint64(n), FaultBusy, FaultHTML, FaultRedirect, FaultCut, FaultTruncate, FaultReset, FaultSlow, FaultEmpty)
}

// decideFile tells what happens to request n, which asks for a file whose name has a hash.
func (f *faults) decideFile(name uint64, n int) Fault {
	always := f.first("file-", 200, name, FaultMissing, FaultLogin, FaultRedirect)
	return cmp.Or(always, f.first("file-", 300, uint64(n), FaultBusy, FaultChange, FaultCut))
}

// first returns the first fault whose rate strikes a number or a hash. Rates are called by
// the prefix and the fault; the salts from salt on keep them apart.
func (f *faults) first(prefix string, salt, what uint64, of ...Fault) Fault {
	for i, fault := range of {
		rate, _ := strconv.ParseFloat(f.text(prefix+string(fault)), 64)
		if chance(mix(mix(f.seed(), salt+uint64(i)), what)) < rate {
			return fault
		}
	}
	return NoFault
}

// elsewhere is where a redirect to another host leads.
func (f *faults) elsewhere(r *http.Request) string {
	return cmp.Or(f.text("redirect-to"), "https://elsewhere.invalid") + r.URL.RequestURI()
}

// chance maps a hash to [0, 1).
func chance(h uint64) float64 { return float64(h>>11) / (1 << 53) }

// bend changes a query as the faults ask that ignore a part of it.
func (f *faults) bend(q *resultsQuery) {
	fresh := newResultsQuery()
	if f.on("ignore-min-id") {
		q.minID = fresh.minID
	}
	if f.on("ignore-max-id") {
		q.maxID = fresh.maxID
	}
	if f.on("ignore-dates") {
		q.dated = false
	}
	if f.on("ignore-min-date") {
		q.after = fresh.after
	}
	if f.on("ignore-max-date") {
		q.before = fresh.before
	}
	q.dated = q.dated && (q.after != fresh.after || q.before != fresh.before)
	if f.on("ignore-page") {
		q.page = 1
	}
	if f.on("ignore-direction") {
		q.desc = true
	}
	if f.on("ignore-sort") {
		q.sort = sortByID
	}
	if f.on("by-date") && q.sort == sortByID {
		q.sort = metaFinish
	}
	if most := f.number("page-cap"); most > 0 {
		q.limit = min(q.limit, most)
	}
	q.lack, q.unsorted, q.most = f.number("lack-update"), f.on("unsorted"), f.number("cut-pages")
	each, once := int64(f.number("twice")), int64(f.number("twice-once"))
	q.twice = func(id int64) bool {
		return each > 0 && id%each == 0 || once > 0 && id%once == 0 && f.repeated.CompareAndSwap(false, true)
	}
}

// told is what the service says of a count n.
func (f *faults) told(n int, form *Form) int {
	if f.on("count-all") {
		n = len(form.stored.records)
	}
	return max(0, n+f.number("count-off"))
}
