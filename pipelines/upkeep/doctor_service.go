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
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// MostRequests is how many requests are sent at most, if none has to be sent again: Get
// Forms, a count for each of mostUnlisted forms, and what finds out what the service honours.
const MostRequests = 1 + mostUnlisted + MostAsked

const (
	mostUnlisted = 3
	sampleSize   = 20
)

// answers is what the service told.
type answers struct {
	checks   []Check
	forms    []string // that a run would read; nil if they are not known
	requests int64
	told     *Honours // nil: nothing was asked
}

// session is a conversation with the service.
type session struct {
	answers
	def    *definition.Definition
	o      account.Options
	client extract.Client
	gone   map[string]bool // forms that the service does not know
}

// askService checks what only the service can tell: whether it is there, the account, the
// key, the forms, the clocks and the zone.
func askService(ctx context.Context, def *definition.Definition, o account.Options, noKey error) answers {
	s := &session{def: def, o: o, gone: map[string]bool{}}
	used := budgetCheck(ctx, def, o)
	s.add(used)
	why := ""
	switch {
	case noKey != nil:
		why = "without a key the service was not asked"
	case used.State != OK:
		why = "the service was not asked, because the budget does not allow it now"
	default:
		var err error
		if s.client, err = account.NewClient(ctx, def, s.o); err != nil {
			s.failed("service", "", err, "correct source.base_url and source.account")
			why = "the service could not be asked"
		}
	}
	if s.client == nil {
		s.skip(why, "service", "account")
		s.key(noKey, why)
		s.skip(why, "forms", "clock", "zone", "specification")
		return s.answers
	}
	defer s.client.Close()
	s.listForms(ctx)
	s.add(judgeClock(s.client.Clocks()))
	s.askForm(ctx)
	s.skip("no form is known whose results could be asked for", "zone", "specification")
	s.requests = s.sent() + s.client.Requests().Retries
	return s.answers
}

// sent returns how many requests were sent, each once.
func (s *session) sent() int64 {
	sent := s.client.Requests()
	return sent.Results + sent.Count + sent.Other
}

func (s *session) add(checks ...Check) { s.checks = append(s.checks, checks...) }

// failed adds a check that failed with an error.
func (s *session) failed(name, of string, err error, cure string) {
	s.add(Check{Name: name, Of: of, State: Failed, Detail: err.Error(), Cure: cure, Err: err})
}

// skip adds checks that were not made, unless they were before.
func (s *session) skip(why string, names ...string) {
	for _, name := range names {
		if !slices.ContainsFunc(s.checks, func(c Check) bool { return c.Name == name }) {
			s.add(Check{Name: name, State: NotChecked, Detail: why})
		}
	}
}

// key adds the check of a key that could not be read.
func (s *session) key(noKey error, why string) {
	if noKey == nil {
		s.skip(why, "key")
		return
	}
	s.failed("key", "", noKey, "set the variable or file that the definition names, or give --api-key-file")
}

// listForms asks for the account's forms, which also tells of the address, the account
// and the key.
func (s *session) listForms(ctx context.Context) {
	all, err := s.client.Forms(ctx)
	if err != nil {
		s.refused(err)
		return
	}
	base := s.def.Source.BaseURL
	s.add(
		Check{Name: "service", State: OK, Detail: base + " answers"},
		Check{Name: "account", State: OK, Detail: s.def.Source.Account + " is known there"},
		Check{Name: "key", State: OK, Detail: "it is accepted"},
	)
	s.forms, err = account.Forms(ctx, listed{s.client, all}, s.def, s.o)
	if err != nil {
		s.failed("forms", "", err, "correct forms, exclude or --form; `formetl forms` lists those of the account")
		return
	}
	var unlisted []string
	for _, form := range s.forms {
		if !slices.ContainsFunc(all, func(f extract.Form) bool { return f.Directory == form }) {
			unlisted = append(unlisted, form)
		}
	}
	if n := len(s.forms) - len(unlisted); n > 0 {
		s.add(Check{Name: "forms", State: OK, Detail: fmt.Sprintf("%d of %d are listed by the service", n, len(s.forms))})
	}
	for i, form := range unlisted {
		s.unlisted(ctx, form, i)
	}
}

// listed is a client that knows the forms already.
type listed struct {
	extract.Client
	forms []extract.Form
}

// Forms implements extract.Client.
func (l listed) Forms(context.Context) ([]extract.Form, error) { return l.forms, nil }

// refused adds the checks that follow from a refused list of forms. Only a refusal of the
// key or the account proves that what comes before it is right.
func (s *session) refused(err error) {
	base, name := s.def.Source.BaseURL, s.def.Source.Account
	answer, _ := errors.AsType[*extract.ServiceError](err)
	answers := Check{Name: "service", State: OK, Detail: base + " answers"}
	switch {
	case answer != nil && answer.Code == extract.CodeInvalidKey:
		s.add(answers)
		s.skip("the service refused the key, which it may do before it looks at the account", "account")
		s.failed("key", "", err, "check the API key: it stands on the form's API page")
	case answer != nil && answer.Code == extract.CodeInvalidUser:
		s.add(answers)
		s.failed("account", name, err, "check source.account: it is the first part of the form's own address")
	default:
		s.failed("service", base, err, serviceCure(err))
	}
	s.skip("the service did not list the forms", "account", "key", "forms")
}

// serviceCure says what to do about a service that does not answer as it should.
func serviceCure(err error) string {
	network, isNetwork := errors.AsType[*transport.NetworkError](err)
	_, foreign := errors.AsType[*transport.NotServiceError](err)
	spent, isSpent := errors.AsType[*transport.BudgetError](err)
	answer, _ := errors.AsType[*extract.ServiceError](err)
	switch {
	case isSpent:
		return "come back after " + spent.ComeBack()
	case foreign, answer != nil && answer.Code == extract.CodeInvalidURL:
		return "set source.base_url to the service's own address"
	case isNetwork && network.Unreached():
		return "check source.base_url, the network and the proxy (HTTPS_PROXY)"
	case transport.Temporary(err):
		return "try again later"
	}
	return "look whether the service is well, and whether source.base_url is its address"
}

// unlisted checks a form that is named and that the service does not list.
func (s *session) unlisted(ctx context.Context, form string, before int) {
	c := Check{Name: "forms", Of: form, State: NotChecked, Detail: "the service does not list it, and was not asked for it"}
	if before < mostUnlisted && s.free(ctx) {
		n, err := s.client.Count(ctx, form, extract.CountQuery{})
		switch {
		case errors.Is(err, extract.ErrNoCount):
			c.State, c.Detail = Warning, "the service does not list it, and answers for it all the same"
			c.Cure = "check whether the form's name is still right; `formetl forms` lists those of the account"
		case err != nil:
			s.gone[form] = true
			s.failed("forms", form, err, "correct the form's name; `formetl forms` lists those of the account")
			return
		default:
			c.State, c.Detail = Warning, fmt.Sprintf("the service does not list it, and counts %d results in it all the same", n)
			c.Cure = "check whether the form's name is still right; `formetl forms` lists those of the account"
		}
	}
	s.add(c)
}

// free tells whether the budget allows another request at once. A run would wait.
func (s *session) free(ctx context.Context) bool {
	now := s.o.Now()
	use, err := account.BudgetUse(ctx, s.def, s.o, now)
	return err == nil && !use.Next.After(now)
}

// askForm looks at the newest results of the first form, whose dates are in the account's
// wall-clock time, and asks what the service honours with it.
func (s *session) askForm(ctx context.Context) {
	i := slices.IndexFunc(s.forms, func(form string) bool { return !s.gone[form] })
	if i < 0 {
		return
	}
	p := &probe{session: s, Honours: Honours{API: s.client.Generation(), Form: s.forms[i]}, before: s.sent()}
	q := extract.ResultsQuery{Sort: extract.UpdateMeta, Descending: true, Limit: sampleSize}
	newest := p.ask(ctx, q, false)
	unsorted := newest.refused
	if unsorted != "" {
		q.Sort = "" // the newest by their ids, then
		newest = p.ask(ctx, q, false)
	}
	if !newest.came {
		s.skip(cmp.Or(p.over, newest.refused), "zone", "specification")
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
	if len(dates) > 0 {
		slices.SortFunc(dates, func(a, b time.Time) int { return b.Compare(a) })
		now := s.o.Now()
		theirs, ours := s.client.Clocks()
		s.add(judgeZone(s.def.Source.Zone, p.Form, dates, now, now.Add(theirs.Sub(ours))))
	}
	s.skip("no result of the page that was asked for has a date", "zone")
	p.honours(ctx, newest, unsorted)
}

// budgetCheck tells how much of the budget is booked. A run waits where the minute's is
// used up, and ends where the day's is.
func budgetCheck(ctx context.Context, def *definition.Definition, o account.Options) Check {
	c, now := Check{Name: "budget", State: OK, Detail: "the definition sets none"}, o.Now()
	use, err := account.BudgetUse(ctx, def, o, now)
	if err != nil {
		c.State, c.Detail, c.Err = Failed, err.Error(), err
		c.Cure = "move away what lies in the ledger's place, or choose another folder with state: or --state"
		return c
	}
	var parts []string
	if use.PerMinute > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d requests of the minute are booked", use.Minute, use.PerMinute))
	}
	if use.PerDay > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d requests of the last 24 hours are booked", use.Day, use.PerDay))
	}
	if len(parts) > 0 {
		c.Detail = strings.Join(parts, ", ")
	}
	if !use.Next.After(now) {
		return c
	}
	spent := &transport.BudgetError{Limit: use.PerMinute, Per: time.Minute, Until: use.Next}
	c.State, c.Cure = Warning, "come back after "+spent.ComeBack()+"; a run waits until then"
	if use.PerDay > 0 && use.Day >= use.PerDay {
		spent.Limit, spent.Per = use.PerDay, 24*time.Hour
		c.State, c.Err = Failed, spent
		c.Cure = "come back after " + spent.ComeBack() + ", or raise source.requests.per_day"
	}
	c.Detail = spent.Error()
	return c
}
