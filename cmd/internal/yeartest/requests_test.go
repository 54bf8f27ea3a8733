package yeartest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/cmd/internal/readback"
	"github.com/formetl/formetl/extract/formservice"
)

// asked is a request for results or a count that was answered.
type asked struct {
	run    int
	count  bool
	window string // its dates, see none
	first  bool   // page of a reading
	kind   kind
	from   time.Time // of the window; zero for none
}

// kind is what a request is for.
type kind int

const (
	ofWindow kind = iota // a page of a window, or the first count
	ofFeed
	ofProof     // whether the service sorts
	ofID        // asks or counts results by their ids
	ofDoubt     // a further count
	ofStale     // a page of a window before the tail
	ofCount     // the first count
	kinds   int = iota
)

func (k kind) String() string {
	return [...]string{"tail", "feed", "proof", "ids", "halving", "stale", "count"}[k]
}

// kindOf tells what a request is for, as far as it shows.
func kindOf(q formservice.Request, query url.Values, counted bool) kind {
	ids := query.Has("fs_min_id") && query.Has("fs_max_id")
	switch {
	case q.Transaction == formservice.TransactionCount && ids, ids && !query.Has("fs_min_date") && !query.Has("fs_max_date"):
		return ofID
	case q.Transaction == formservice.TransactionCount && counted:
		return ofDoubt
	case q.Transaction == formservice.TransactionCount:
		return ofCount
	case query.Get("fs_sort") == "date_update" && query.Get("fs_limit") != "1":
		return ofFeed
	case query.Get("fs_sort") != "" && query.Get("fs_sort") != "result_id":
		return ofProof
	}
	return ofWindow
}

// sent is how many requests a run sent, for the budget.
type sent struct {
	told   time.Time
	n      int // that arrived
	booked int // by its own account: some find nobody
}

// cost is what a pipeline's requests came to.
type cost struct {
	used     int // answers for what was committed
	expected int // as issue 4 has it
	pages    int // of expected, those of ranges
	again    int // of expected, those of windows read again
	older    int // of expected, those of older windows
	undated  int // of expected, those that look for results without a date
	counts   int // of expected
	counted  int // of used, the counts
	lost     int // answers that nothing was committed of
	refused  int
	forms    int // lists of forms
	runs     int // of forms
	kinds    [kinds]int
}

func (c *cost) add(o cost) {
	c.used += o.used
	c.expected += o.expected
	c.pages += o.pages
	c.again += o.again
	c.older += o.older
	c.undated += o.undated
	c.counts += o.counts
	c.counted += o.counted
	c.lost += o.lost
	c.refused += o.refused
	c.forms += o.forms
	c.runs += o.runs
	for i, n := range o.kinds {
		c.kinds[i] += n
	}
}

// each tells where the requests of a form's run go on average.
func (c cost) each() string {
	text := fmt.Sprintf("%d runs of forms, each", c.runs)
	for i, n := range c.kinds {
		text += fmt.Sprintf(" %.2f %s", float64(n)/float64(max(1, c.runs)), kind(i))
	}
	return text
}

func (c cost) String() string {
	return fmt.Sprintf("%d used, %d of them counts; %d expected: %d pages, %d counts, %d of windows read again, %d of older ones, %d without a date; used/expected %.3f; besides %d lost, %d refused, %d lists of forms",
		c.used, c.counted, c.expected, c.pages, c.counts, c.again, c.older, c.undated, c.ratio(), c.lost, c.refused, c.forms)
}

func (c cost) ratio() float64 { return float64(c.used) / float64(max(1, c.expected)) }

// answered sorts the requests of a run by form; what was not answered is
// refused.
func answered(r *run, log []formservice.Request) (byForm map[string][]asked, other cost) {
	byForm = map[string][]asked{}
	for _, q := range log {
		switch {
		case q.Fault != formservice.NoFault || q.Status != http.StatusOK:
			other.refused++
		case q.Transaction == formservice.TransactionForms:
			other.forms++
		default:
			query, _ := url.ParseQuery(q.Query) // the service has taken it
			counted := slices.ContainsFunc(byForm[q.Form], func(a asked) bool { return a.kind == ofCount })
			from, _ := time.Parse(wallLayout, query.Get("fs_min_date")) // zero for none
			byForm[q.Form] = append(byForm[q.Form], asked{
				kind: kindOf(q, query, counted), from: from,
				run: r.number, count: q.Transaction == formservice.TransactionCount,
				window: strings.TrimSpace(query.Get("fs_min_date") + " … " + query.Get("fs_max_date")),
				first:  !query.Has("fs_min_id") && !query.Has("fs_page"),
			})
		}
	}
	return byForm, other
}

// charge sets the requests for a form against what they were to be, once what
// they brought is committed.
func (v *verdict) charge(own []asked) (c cost) {
	if !v.did {
		v.after.unused = append(slices.Clone(v.before.unused), own...)
		return c
	}
	used := own
	earlier, lost := v.kept(own)
	used = append(used, earlier...)
	c.used, c.lost, v.after.unused = len(used), lost, nil
	c.runs = 1
	for _, a := range used {
		if a.count {
			c.counted++
		}
		if a.kind == ofWindow && a.from.Before(v.entries[len(v.entries)-1].Range.From.Time) {
			a.kind = ofStale
		}
		c.kinds[a.kind]++
	}
	if v.w.way.follows() && !v.begins {
		return c // TestYearCostsLess holds them to what they were before
	}
	widened := v.before.widen(v.own)
	for _, e := range v.entries {
		whole := widened
		if len(v.entries) > 1 || e.Continued != "" {
			whole = span{e.Range.From.Time, e.Range.To.Time}
		}
		c.pages += v.after.pages(whole)
		c.counts += 2
		c.again += again(own, e.Reread)
	}
	for path, p := range v.before.parts {
		if v.after.parts[path] == nil && !widened.meets(p.Part) && v.left(p) {
			c.older += v.after.pages(span{p.From.Time, p.To.Time})
		}
	}
	if v.own.from.IsZero() {
		c.undated = v.undated(used)
	}
	c.expected = c.pages + c.counts + c.again + c.older + c.undated
	return c
}

// left tells whether a result of a part is in a part of other dates now: then
// the part had to be read again.
func (v *verdict) left(p *part) bool {
	return !p.Undated && slices.ContainsFunc(p.rows, func(r *row) bool {
		is := v.after.rows[r.id]
		return is != nil && !span{p.From.Time, p.To.Time}.meets(is.part.Part)
	})
}

// undated is how many requests a run may spend on results without a date, which
// are only looked for where everything is read: no more than one pass.
func (v *verdict) undated(used []asked) int {
	n := 0
	for _, a := range used {
		if a.window == none {
			n++
		}
	}
	return min(n, 4+pagesOf(int64(len(v.after.rows))))
}

// none is the window of a request without dates.
const none = "…"

// kept are the requests of earlier runs whose answers this one took over:
// those of windows that it did not ask for again, and the counts of the run
// that began. The others are lost.
func (v *verdict) kept(own []asked) (kept []asked, lost int) {
	continued := slices.ContainsFunc(v.entries, func(e formReport) bool { return e.Continued != "" })
	again := map[string]bool{}
	for _, a := range own {
		if !a.count {
			again[a.window] = true
		}
	}
	last := map[string]int{} // the run that asked for a window last: its reading is the one that is kept
	for _, a := range v.before.unused {
		last[a.window] = a.run
	}
	for _, a := range v.before.unused {
		if !continued || a.count && a.run != v.before.unused[0].run || !a.count && (again[a.window] || a.run != last[a.window]) {
			lost++
			continue
		}
		kept = append(kept, a)
	}
	return kept, lost
}

// again is how many pages a run asked for of windows that it had read, of so
// many windows at most.
func again(own []asked, most int) int {
	readings, extra, n := map[string]int{}, 0, 0
	for _, a := range own {
		if a.count {
			continue
		}
		if a.first {
			if readings[a.window]++; readings[a.window] > 1 {
				extra++
			}
		}
		if readings[a.window] > 1 && extra <= most {
			n++
		}
	}
	return n
}

// widen extends a range to the whole parts that it touches.
func (d *dataset) widen(s span) span {
	for widened := true; widened; {
		widened = false
		for _, e := range d.manifest.Parts {
			if !s.meets(e) {
				continue
			}
			if e.From.Before(s.from) {
				s.from, widened = e.From.Time, true
			}
			if s.to.Before(e.To.Time) {
				s.to, widened = e.To.Time, true
			}
		}
	}
	return s
}

// pages is how many requests for results a range takes: at least one for each
// partition, of a range without a beginning from the first result on.
func (d *dataset) pages(s span) int {
	if d.pipeline.partition == "none" {
		rows := int64(0)
		for _, p := range d.parts {
			if s.meets(p.Part) {
				rows += p.Rows
			}
		}
		return pagesOf(rows)
	}
	rows := map[time.Time]int64{}
	first := s.to
	for _, p := range d.parts {
		if s.meets(p.Part) {
			start := readback.Start(d.pipeline.partition, p.To.Add(-time.Second))
			rows[start] += p.Rows
			if start.Before(first) {
				first = start
			}
		}
	}
	n := 0
	if !s.from.IsZero() {
		first = readback.Start(d.pipeline.partition, s.from)
	}
	for at := first; at.Before(s.to); at = after(d.pipeline.partition, at) {
		n += pagesOf(rows[at])
	}
	return n
}

// after is the beginning of the partition after the one that begins at a time.
func after(partition string, at time.Time) time.Time {
	if partition == "month" {
		return at.AddDate(0, 1, 0)
	}
	return at.AddDate(0, 0, 1)
}

func pagesOf(rows int64) int { return int(max(1, (rows+99)/100)) }

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// overspent is an error where a run sent more requests than were left of the
// day, and tells whether it may have found none left.
func (w *world) overspent(r *run, log []formservice.Request) (spent bool, err error) {
	n := 0
	for _, q := range log {
		if q.Fault != formservice.FaultReset { // a lost connection has the same request come twice
			n++
		}
	}
	booked := 0
	if r.report != nil {
		for _, attempts := range r.report.Outcomes {
			booked += attempts
		}
	}
	left, unbooked := r.perDay, r.perDay-max(n, booked)
	for _, s := range w.ledger {
		if s.told.After(r.told.Add(-24*time.Hour - 10*time.Second)) {
			unbooked -= s.booked
		}
		if s.told.After(r.told.Add(-24*time.Hour + r.took + 10*time.Second)) {
			left -= s.n
		}
	}
	w.ledger = append(w.ledger, sent{r.told, n, max(n, booked)})
	w.ledger = slices.DeleteFunc(w.ledger, func(s sent) bool { return s.told.Before(r.told.Add(-48 * time.Hour)) })
	if n > max(0, left) {
		return false, fmt.Errorf("it sent %d requests, of %d a day %d were left", n, r.perDay, left)
	}
	return unbooked < 40, nil
}
