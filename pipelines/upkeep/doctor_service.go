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
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas/plain"
)

// MostRequests is how many requests doctor sends to the service at most, if none has to be sent
// again: Get Forms, a count for each of mostUnlisted forms, and MostAsked requests that find out
// what the service honours.
const MostRequests = 1 + mostUnlisted + MostAsked

const (
	mostUnlisted = 3
	newestSize   = 20 // how many of a form's newest results are looked at
)

// askService makes the checks that need an answer of the service: whether it answers, the account,
// the key, the forms, the clocks, the zone and what the service honours. noKey is why there is no
// key, nil if there is one.
func (e *examination) askService(ctx context.Context, noKey error) {
	used := budgetCheck(ctx, e)
	e.add(used)
	var why string
	switch {
	case noKey != nil:
		why = "the service was not asked, because there is no key"
	case used.State != OK:
		why = "the service was not asked, because the budget does not allow it now"
	default:
		client, err := pipelines.NewClient(ctx, e.def, e.o)
		if err == nil {
			e.client = client
			defer client.Close()
			e.listForms(ctx)
			e.add(judgeClock(client.Clocks()))
			e.askForm(ctx)
			e.skip("no form is known that could be tested", "zone", "specification")
			e.Requests = e.sent() + client.Requests().Retries
			return
		}
		e.add(failed("service", "", err, "correct source.base_url and source.account"))
		why = "the service could not be asked"
	}
	e.skip(why, "service", "account")
	if noKey != nil {
		e.add(failed("key", "", noKey, "set the variable or file that the definition names, or give --api-key-file"))
	}
	e.skip(why, "key", "forms", "clock", "zone", "specification")
}

// sent returns how many requests doctor sent to the service, without repeated tries.
func (e *examination) sent() int64 {
	sent := e.client.Requests()
	return sent.Results + sent.Count + sent.Other
}

// listForms asks the service for the account's forms. The answer also tells whether the address,
// the account and the key are right.
func (e *examination) listForms(ctx context.Context) {
	all, err := e.client.Forms(ctx)
	if err != nil {
		e.refused(err)
		return
	}
	e.ok("service", e.def.Source.BaseURL+" answers")
	e.ok("account", e.def.Source.Account+" exists")
	e.ok("key", "the service accepts it")
	e.forms, err = pipelines.Forms(ctx, listed{e.client, all}, e.def, e.o)
	if err != nil {
		e.add(failed("forms", "", err, "correct forms, exclude or --form; `"+e.def.Command("forms")+"` lists the forms of the account"))
		return
	}
	unlisted := slices.DeleteFunc(slices.Clone(e.forms), func(form string) bool {
		return slices.ContainsFunc(all, func(f extract.Form) bool { return f.Directory == form })
	})
	if n := len(e.forms) - len(unlisted); n > 0 {
		e.ok("forms", fmt.Sprintf("%d of %d are listed by the service", n, len(e.forms)))
	}
	e.gone = map[string]bool{}
	for i, form := range unlisted {
		if i >= mostUnlisted || !e.mayAsk(ctx) {
			e.add(Check{Name: "forms", Of: form, State: NotChecked, Detail: "the service does not list it, and was not asked whether it exists"})
			continue
		}
		n, err := e.client.Count(ctx, form, extract.CountQuery{})
		does := "counts " + plain.Plural(n, "result") + " in it"
		if errors.Is(err, extract.ErrNoCount) {
			does, err = "answers for it", nil
		}
		if e.gone[form] = err != nil; err != nil {
			e.add(failed("forms", form, err, serviceCure(err)))
			continue
		}
		e.add(Check{
			Name: "forms", Of: form, State: Warning, Detail: "the service does not list it, but " + does,
			Cure: "check whether the form's name is still right; `" + e.def.Command("forms") + "` lists the forms of the account",
		})
	}
}

// listed is a client that was told the account's forms, so that Forms asks the service no more.
type listed struct {
	extract.Client
	forms []extract.Form
}

// Forms implements extract.Client: it returns the forms that listed holds, without a request.
func (l listed) Forms(context.Context) ([]extract.Form, error) { return l.forms, nil }

// refused adds the checks of service, account and key that follow from err, by which Get Forms
// failed. Only a refusal of the key or the account proves that the address is right.
func (e *examination) refused(err error) {
	name, of := "service", e.def.Source.BaseURL
	answer, _ := errors.AsType[*transport.ServiceError](err)
	switch {
	case answer != nil && answer.Code == transport.CodeInvalidKey:
		e.ok(name, of+" answers")
		e.skip("the service refused the key, so it is not known whether the account exists", "account")
		name, of = "key", ""
	case answer != nil && answer.Code == transport.CodeInvalidUser:
		e.ok(name, of+" answers")
		name, of = "account", e.def.Source.Account
	}
	e.add(failed(name, of, err, serviceCure(err)))
	e.skip("the service did not list the forms", "account", "key", "forms")
}

// serviceCure says what to do about err, by which a request to the service failed.
func serviceCure(err error) string {
	if says, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok && says.Hint() != "" {
		return says.Hint()
	}
	if transport.Temporary(err) {
		return "try again later"
	}
	return "check whether the service works, and whether source.base_url is its address"
}

// mayAsk tells whether the budget allows another request now. Doctor does not wait for the budget,
// as a run does.
func (e *examination) mayAsk(ctx context.Context) bool {
	now := e.o.Now()
	use, err := pipelines.BudgetUse(ctx, e.def, e.o, now)
	return err == nil && !use.Next.After(now)
}

// askForm judges the zone by the newest results of the first form, whose dates are by API v1 in
// the account's wall-clock time, and asks what the service honours with that form.
func (e *examination) askForm(ctx context.Context) {
	i := slices.IndexFunc(e.forms, func(form string) bool { return !e.gone[form] })
	if i < 0 {
		return
	}
	p := &inquiry{examination: e, table: Honours{API: e.client.Generation(), Form: e.forms[i]}, sentBefore: e.sent()}
	q := extract.ResultsQuery{Sort: extract.UpdateMeta, Descending: true, Limit: newestSize}
	newest := p.ask(ctx, q, false)
	unsorted := newest.refused
	if unsorted != "" {
		q.Sort = "" // instead, the newest results by their ids
		newest = p.ask(ctx, q, false)
	}
	if !newest.came {
		e.skip(cmp.Or(p.over, newest.refused), "zone", "specification")
		return
	}
	var dates []time.Time
	for _, c := range newest.rows {
		switch {
		case !c.At.IsZero():
			dates = append(dates, c.At)
		case len(c.Dates) > 0:
			dates = append(dates, c.Dates[0])
		}
	}
	switch {
	case p.table.API == "v2":
		e.skip("API v2 sends times in UTC, so they do not show whether the zone is right; compare it with the account's settings", "zone")
	case len(dates) > 0:
		slices.SortFunc(dates, func(a, b time.Time) int { return b.Compare(a) })
		now := e.o.Now()
		theirs, ours := e.client.Clocks()
		e.add(judgeZone(e.def.Source.Zone, p.table.Form, dates, now, now.Add(theirs.Sub(ours))))
	}
	e.skip("none of the newest results has a date to compare with the clock", "zone")
	p.honours(ctx, newest, unsorted)
}

// budgetCheck tells how many requests of the budget are booked. It warns if the budget of a minute
// is used up, because a run waits then. It fails if that of a day is, because a run ends then.
func budgetCheck(ctx context.Context, e *examination) Check {
	now := e.o.Now()
	use, err := pipelines.BudgetUse(ctx, e.def, e.o, now)
	if err != nil {
		return failed("budget", "", err, "move the file that the message names, or choose another folder with state: or --state")
	}
	spent := &transport.BudgetError{Limit: use.PerMinute, Per: time.Minute, Until: use.Next}
	switch {
	case !use.Next.After(now):
	case use.PerDay > 0 && use.Day >= use.PerDay:
		spent.Limit, spent.Per = use.PerDay, 24*time.Hour
		return failed("budget", "", spent, "run it after "+spent.ComeBack()+", or raise source.requests.per_day")
	default:
		return Check{Name: "budget", State: Warning, Detail: spent.Error(), Cure: "wait until " + spent.ComeBack() + ", as a run does"}
	}
	var parts []string
	if use.PerMinute > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d requests of the last minute are used", use.Minute, use.PerMinute))
	}
	if use.PerDay > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d requests of the last 24 hours are used", use.Day, use.PerDay))
	}
	return Check{Name: "budget", State: OK, Detail: cmp.Or(strings.Join(parts, ", "), "the definition sets no budget")}
}

// clockFault is the difference of this machine's clock and the service's from which on a run fails
// or reads wrong data: S3 refuses requests, and a range without `to` ends too far from the
// service's present.
const clockFault = 15 * time.Minute

// judgeClock compares theirs, the service's clock by the header Date of its last answer (RFC 9110,
// section 6.6.1), with ours, this machine's clock when that answer came. The header has full
// seconds. How long the answer took is far less than the differences that are reported.
func judgeClock(theirs, ours time.Time) Check {
	if theirs.IsZero() {
		return Check{Name: "clock", State: NotChecked, Detail: "no answer had a Date header, so the service's clock is not known"}
	}
	var off time.Duration
	switch last := theirs.Add(time.Second); {
	case ours.After(last):
		off = ours.Sub(last)
	case ours.Before(theirs):
		off = ours.Sub(theirs)
	}
	if off.Abs() < reading.ClockLeeway {
		return Check{Name: "clock", State: OK, Detail: "this machine's clock and the service's agree within " + plain.Lasting(max(off.Abs(), time.Second))}
	}
	err := reconcile.ClocksDiffer(ours, theirs, off)
	if off.Abs() < clockFault {
		return Check{Name: "clock", State: Warning, Detail: err.Text, Cure: err.Cure}
	}
	c := failed("clock", "", err, err.Cure)
	c.Detail += "; ranges without `to` end at the wrong time, and S3 refuses requests"
	return c
}

// judgeZone compares the dates of the newest changes of a form, the latest first, with the present
// by this machine's clock and the service's. A date in the future proves that the zone of the
// definition is wrong. A zone too far east is not found: it makes results look old, as they are
// in a form that nobody fills in.
func judgeZone(zone *time.Location, form string, dates []time.Time, ours, theirs time.Time) Check {
	c := Check{Name: "zone", Of: form, State: NotChecked}
	early, late := ours, theirs
	if late.Before(early) {
		early, late = late, early
	}
	for len(dates) > 0 && reconcile.Ahead(zone, dates[0], late) > reading.WidestZone {
		dates = dates[1:]
	}
	if len(dates) == 0 {
		imported := reconcile.Imported()
		c.State, c.Detail, c.Cure = Warning, imported.Text, imported.Cure
		return c
	}
	newest := dates[0]
	age := load.Wall(theirs.In(zone)).Sub(newest)
	switch by := reconcile.Ahead(zone, newest, late); {
	case by > 0:
		err := reconcile.ZoneIsWrong(form, zone, newest, by)
		return failed("zone", form, err, err.Cure)
	case reconcile.Ahead(zone, newest, early) > 0:
		c.Detail = "this machine's clock and the service's differ: by one of them the newest change is in the future, by the other not"
	case age > reading.WidestZone:
		c.Detail = fmt.Sprintf("the newest change is %s old, and only a change of the last day can show whether the zone is right: compare it with the account's settings, or fill in the form and run doctor again", plain.Lasting(age))
	default:
		c.State, c.Detail = OK, fmt.Sprintf("in %s the newest change is %s old, and no date is in the future", zone, plain.Lasting(max(age, 0)))
	}
	return c
}
