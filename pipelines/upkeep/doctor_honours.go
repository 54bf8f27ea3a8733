package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
)

// MostAsked is how many requests doctor sends at most to find out what the service honours.
const MostAsked = 12

// The answers to whether the service honours what it was asked for. It is NotShown if the form has
// too few results to tell.
const (
	Yes      = "yes"
	No       = "no"
	NotShown = "not shown"
)

// Row is one thing that the service was asked for, such as "ascending ids", with Yes, No or
// NotShown as the answer. Needed tells whether the specification demands that the service honours
// it, so that a run ends with exit code 65 if the service does not.
type Row struct {
	Asked  string `json:"asked"`
	Answer string `json:"answer"`
	Reason string `json:"reason"`
	Needed bool   `json:"needed"`
}

// Honours is the table of what the service honours. The table may be shown to strangers: no id,
// date, value, label or number of results stands in it.
type Honours struct {
	API      string `json:"api"`
	Form     string `json:"form"` // form whose results were asked for; other forms may show more
	Requests int64  `json:"requests"`
	Rows     []Row  `json:"rows"`
}

// inquiry finds out, with the results of one form, what the service honours.
type inquiry struct {
	*examination
	table      Honours
	sentBefore int64  // how many requests doctor had sent for other checks
	over       string // why no further request is sent; "" while the inquiry goes on
	pages      int    // how many pages of several results came that were asked for by ascending ids
	unordered  int    // on how many of these pages the ids did not ascend
}

// reply is what an inquiry uses of one answer of the service.
type reply struct {
	came    bool
	refused string // how the service refused the request, "" if it did not
	rows    []extract.Change
	ids     []int64 // ids of the results in rows, ascending
	count   int64
}

// ask asks the service for the page of results of q or, with count, for their number. Once the
// inquiry is over, it sends nothing and returns an empty reply.
func (p *inquiry) ask(ctx context.Context, q extract.ResultsQuery, count bool) (a reply) {
	if p.over == "" && (p.sent()-p.sentBefore >= MostAsked || !p.mayAsk(ctx)) {
		p.over = "no more requests are allowed now"
	}
	if p.over != "" {
		return a
	}
	var err error
	if count {
		a.count, err = p.client.Count(ctx, p.table.Form, extract.CountQuery{Window: q.Window, IDs: q.IDs})
	} else if page, failed := p.client.Results(ctx, p.table.Form, q); failed != nil {
		err = failed
	} else {
		rises, _ := page.Order()
		a.rows, a.ids = extract.ChangesOf(page), slices.Sorted(slices.Values(page.IDs()))
		page.Release()
		if len(a.ids) > 1 && !q.Descending {
			p.pages++
			if !rises {
				p.unordered++
			}
		}
	}
	refused, _ := errors.AsType[*transport.ServiceError](err)
	switch {
	case err == nil:
		a.came = true
	case errors.Is(err, extract.ErrNoCount):
		a.refused = "the headers have no count"
	case refused != nil && !refused.Temporary():
		a.refused = fmt.Sprintf("the service refuses it with error %d", refused.Code)
	default:
		p.over = "the service did not answer"
		p.add(failed("forms", p.table.Form, err, serviceCure(err)))
	}
	return a
}

// verdict is whether the service honours one thing that it was asked for.
type verdict struct {
	wrong string // what the service did instead of what it was asked for, "" if nothing else was seen
	shown bool   // the answers suffice to tell; if wrong is "", the service did what it was asked for
}

// agrees compares how many results a page holds with the service's count for the same bounds. If
// these differ, both are asked for again, because results may have come or gone. A full page is
// not compared, because it need not hold all results.
func (p *inquiry) agrees(ctx context.Context, q extract.ResultsQuery, page reply) verdict {
	for last := int64(-1); page.came && len(page.rows) < p.client.PageSize(); page = p.ask(ctx, q, false) {
		n := p.ask(ctx, q, true)
		switch {
		case n.came && n.count == int64(len(page.rows)):
			return verdict{"", n.count > 0}
		case n.came && n.count == last:
			return verdict{"they differ from the results, even when asked again", true}
		case !n.came || last >= 0:
			return verdict{n.refused, false}
		}
		last = n.count
	}
	return verdict{}
}

// tell adds a row to the table. how is its reason for Yes, and why its reason for NotShown, such as
// too few results.
func (p *inquiry) tell(asked string, needed bool, v verdict, how, why string) {
	r := Row{Asked: asked, Answer: Yes, Reason: how, Needed: needed}
	switch {
	case v.wrong != "":
		r.Answer, r.Reason = No, v.wrong
	case !v.shown:
		r.Answer, r.Reason = NotShown, cmp.Or(p.over, why)
	}
	p.table.Rows = append(p.table.Rows, r)
}

// honours asks what the service honours with the form, and adds the table and its check. newest is
// the page of the form's newest changes. unsorted is how the service refused to sort by changes,
// "" if it did not.
func (p *inquiry) honours(ctx context.Context, newest reply, unsorted string) {
	minID, maxID, minDate, maxDate, needed := "fs_min_id", "fs_max_id", "fs_min_date", "fs_max_date", true
	if p.table.API != "v1" {
		// needed is of the counts between bounds, which a run by API v2 can do without.
		minID, maxID, minDate, maxDate, needed = "after_id", "before_id", "after_date", "before_date", false
	}
	first := p.ask(ctx, extract.ResultsQuery{}, false)
	n := len(first.ids)

	// Bounds of ids are tested with the ids in the middle of the first page, so that other ids lie
	// below and above.
	var all extract.IDRange
	var below, above, early, late, dated verdict
	if n > 0 {
		all = extract.IDRange{Min: first.ids[0], Max: first.ids[n-1]}
	}
	middle, in := extract.ResultsQuery{IDs: all}, first
	if n > 2 && all.Min < all.Max {
		middle.IDs = extract.IDRange{Min: first.ids[n/3], Max: first.ids[n-1-n/3]}
		in = p.ask(ctx, middle, false)
		if below.wrong, above.wrong = in.refused, in.refused; in.refused != "" {
			all = extract.IDRange{} // dates are asked for without bounds of ids
		}
		if len(in.ids) > 0 && in.ids[0] < middle.IDs.Min {
			below.wrong = "results with lower ids came"
		}
		if len(in.ids) > 0 && in.ids[len(in.ids)-1] > middle.IDs.Max {
			above.wrong = "results with higher ids came"
		}
		// Bounds of ids are inclusive, so the results with the bounds as their ids must come.
		both := slices.Contains(in.ids, middle.IDs.Min) && slices.Contains(in.ids, middle.IDs.Max)
		below.shown, above.shown = both, both
	}
	counts := p.agrees(ctx, middle, in)

	// Bounds of dates are tested with two spans without common time, each bounded on both sides, so
	// that no result may come for both. The outer bounds lie beyond the dates of results, so a
	// result that comes for both tells by its date which of the inner bounds was not honoured.
	dateOf := func(r extract.Change) time.Time { return append(slices.Clone(r.Dates), time.Time{})[0] }
	var dates []time.Time
	for _, r := range first.rows {
		if !dateOf(r).IsZero() {
			dates = append(dates, dateOf(r))
		}
	}
	slices.SortFunc(dates, time.Time.Compare)
	cut := max(1, len(dates)/2)
	for cut < len(dates) && dates[cut].Sub(dates[cut-1]) < 5*time.Second {
		// For dates nearer than 5 s, the precision of the service's bounds could matter.
		cut++
	}
	if cut < len(dates) {
		before, after := extract.ResultsQuery{IDs: all}, extract.ResultsQuery{IDs: all}
		before.Window = extract.Window{From: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), To: dates[cut-1].Add(time.Second)}
		after.Window = extract.Window{From: dates[cut], To: p.o.Now().UTC().AddDate(0, 0, 2).Truncate(24 * time.Hour)}
		var second reply
		one := p.ask(ctx, before, false)
		if early.wrong, late.wrong = one.refused, one.refused; one.refused == "" {
			second = p.ask(ctx, after, false)
		}
		common := func(a reply) []extract.Change {
			return slices.DeleteFunc(slices.Clone(second.rows), func(r extract.Change) bool { return !slices.Contains(a.ids, r.ID) })
		}
		both := common(one)
		if len(both) > 0 { // a result may have changed its date meanwhile
			both = common(p.ask(ctx, before, false))
		}
		for _, r := range both {
			if dateOf(r).Before(after.Window.From) {
				early.wrong = "a result with an earlier date came, even when asked again"
			} else {
				late.wrong = "a result with a later date came, even when asked again"
			}
		}
		early.shown = len(one.rows) > 0 && len(second.rows) > 0
		if dated = p.agrees(ctx, before, one); dated.shown && dated.wrong == "" {
			dated = p.agrees(ctx, after, second)
		}
	}

	ascend := verdict{shown: p.pages > 0}
	if p.unordered > 1 || p.unordered == p.pages && p.pages > 0 {
		ascend.wrong = "the ids of some pages do not ascend"
	}
	const few, fewDates, agree, apart = "the form has too few results", "too few results have dates that differ", "they agree with the results", "two separate spans of time share no result"
	const uncounted = "the form has no results, or more than one page of them, or they changed meanwhile"
	late.shown = early.shown
	p.tell("ascending ids", true, ascend, "the ids of each page ascend", few)
	p.tell(minID, true, below, "no result with a lower id came", few)
	p.tell(maxID, true, above, "no result with a higher id came", few)
	p.tell(minDate, true, early, apart, fewDates)
	p.tell(maxDate, true, late, apart, fewDates)
	p.tell("counts between ids", needed, counts, agree, uncounted)
	p.tell("counts between dates", needed, dated, agree, cmp.Or(map[bool]string{false: fewDates}[early.shown], uncounted))
	p.tell("sort by "+extract.UpdateMeta, false, sorted(newest.rows, unsorted), "the newest changes came first", "too few results have this date, or their ids are in the same order")
	p.table.Requests = p.sent() - p.sentBefore
	p.Honours = &p.table
	p.add(p.check())
}

// sorted judges whether changes came in the order that was asked for, the latest first. That is not
// shown if the same rows are also in the order of ids, by chance. refused is how the service
// refused that order, "" if it did not.
func sorted(rows []extract.Change, refused string) verdict {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r extract.Change) bool { return r.At.IsZero() })
	ids := func(a, b extract.Change) int { return cmp.Compare(a.ID, b.ID) }
	switch {
	case len(rows) == 0:
		return verdict{}
	case refused != "":
		return verdict{wrong: refused}
	case !slices.IsSortedFunc(rows, func(a, b extract.Change) int { return b.At.Compare(a.At) }):
		return verdict{wrong: "the changes are in another order"}
	}
	rises := slices.IsSortedFunc(rows, ids)
	slices.Reverse(rows)
	return verdict{shown: !rises && !slices.IsSortedFunc(rows, ids)}
}

// check sums the table of what the service honours up as a Check.
func (p *inquiry) check() Check {
	var yes int
	var broken, others []string
	for _, r := range p.table.Rows {
		switch {
		case r.Answer == Yes:
			yes++
		case r.Answer == No && r.Needed:
			broken = append(broken, r.Asked)
		case r.Answer == No:
			others = append(others, r.Asked)
		}
	}
	c := Check{Name: "specification", Of: p.table.Form, State: OK, Detail: "the service passed all tests in the table below"}
	if yes < len(p.table.Rows) {
		c.Detail = fmt.Sprintf("the service passed %d of the %d tests in the table below; the others could not be made", yes, len(p.table.Rows))
	}
	switch {
	case len(broken) > 0:
		err := &definition.Fault{Code: 65, Text: fmt.Sprintf("the service breaks its specification for form %s: it does not honour %s", p.table.Form, strings.Join(broken, ", "))}
		c = failed(c.Name, c.Of, err, "send the table below, which contains no results, to those who run the service; until they mend it, runs may fail with exit code 65 rather than write wrong results")
	case len(others) > 0:
		c.State, c.Detail = Warning, "the service does not honour "+strings.Join(others, ", ")+"; runs work without that, but may prove less"
		c.Cure = "if runs must prove that no result is missing, send the table below to those who run the service"
	case yes == 0:
		c.State = NotChecked
	}
	return c
}
