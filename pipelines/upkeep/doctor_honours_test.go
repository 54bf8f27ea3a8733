package upkeep_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// secretForm is a form with as many results, whose changes are in another order than their
// ids, and whose every text can be found again.
func secretForm(n int) *formservice.Form {
	begin := time.Date(2024, 3, 7, 11, 13, 17, 0, time.UTC)
	results := make([]formservice.Result, 0, n)
	for i := range n {
		at := begin.Add(time.Duration(i^1) * 97 * time.Minute)
		r := pipelinestest.Result(int64(770_001+3*i), at.Format(formservice.WallTime), fmt.Sprintf("secret-%d\x1b[31m<b>&", i))
		r.Metas = append(r.Metas, formservice.Meta{ID: "date_update", Value: at.Add(time.Duration(i*7919%100) * time.Hour).Format(formservice.WallTime)},
			formservice.Meta{ID: "user_ip", Value: fmt.Sprintf("secret-ip-%d", i)})
		results = append(results, r)
	}
	return formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "secret label"}}, results)
}

// answersOf gives the answer of each row of the table.
func answersOf(h *upkeep.Honours) map[string]string {
	all := map[string]string{}
	for _, r := range h.Rows {
		all[r.Asked] = r.Answer
	}
	return all
}

// rewriting changes what is sent, where a fault of the service has no name. nil sends it as
// it is.
type rewriting func(*http.Request)

func (w rewriting) RoundTrip(r *http.Request) (*http.Response, error) {
	if w != nil {
		r = r.Clone(r.Context())
		w(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// without takes parameters from a request.
func without(names ...string) func(*http.Request) {
	return func(r *http.Request) {
		q := r.URL.Query()
		for _, name := range names {
			q.Del(name)
		}
		r.URL.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	}
}

// refusing lets the service refuse a parameter.
func refusing(name string) func(*http.Request) {
	return func(r *http.Request) {
		r.URL.RawQuery = strings.Replace(r.URL.RawQuery, name+"=", name+"=x", 1)
	}
}

// TestHonours: each row of the table is broken by the fault that breaks it, and by no other.
// At most twelve requests are sent, and nothing of an answer is shown.
func TestHonours(t *testing.T) {
	needs.Slow(t)
	const (
		order, counts, dated = "ascending ids", "counts between ids", "counts between dates"
		sorts                = "sort by date_update"
		yes, no, notShown    = upkeep.Yes, upkeep.No, upkeep.NotShown
	)
	type rows = map[string]string
	v1, v2 := definition.APIv1, definition.APIv2
	// What few results cannot show, by the ids and dates of either generation.
	tooFew := func(api definition.API, more rows) rows {
		all := rows{"fs_min_id": notShown, "fs_max_id": notShown}
		if api == v2 {
			all = rows{"after_id": notShown, "before_id": notShown}
		}
		maps.Copy(all, more)
		return all
	}
	undated := func(api definition.API) rows {
		from, to := "fs_min_date", "fs_max_date"
		if api == v2 {
			from, to = "after_date", "before_date"
		}
		return tooFew(api, rows{from: notShown, to: notShown, dated: notShown, order: notShown, sorts: notShown})
	}
	empty := func(api definition.API) rows {
		all := undated(api)
		all[counts] = notShown
		return all
	}
	for _, c := range []struct {
		name    string
		api     definition.API
		results int
		faults  string
		between rewriting
		want    rows // of those that are not yes
		state   upkeep.CheckState
	}{
		{name: "lawful", api: v1, results: 620, state: upkeep.OK},
		{name: "lawful", api: v2, results: 620, state: upkeep.OK},
		{name: "lawful variants", api: v2, results: 620, faults: "v2-number-ids,v2-fractions=random,v2-seconds,v2-clamp-limit,v2-snake-stats", state: upkeep.OK},
		{name: "lawful coarse bounds", api: v2, results: 620, faults: "v2-coarse-bounds,v2-fractions=random", state: upkeep.OK},
		{name: "lawful variants", api: v1, results: 620, faults: "strict-limit,old-root,errors-200,headings=nested,bare-max-midnight", state: upkeep.OK},

		{name: "empty", api: v1, want: empty(v1), state: upkeep.NotChecked},
		{name: "empty", api: v2, want: empty(v2), state: upkeep.NotChecked},
		{name: "one result", api: v1, results: 1, want: undated(v1), state: upkeep.OK},
		{name: "one result", api: v2, results: 1, want: undated(v2), state: upkeep.OK},
		{name: "two results", api: v1, results: 2, want: tooFew(v1, rows{sorts: notShown}), state: upkeep.OK},
		{name: "thirty results", api: v2, results: 30, want: rows{}, state: upkeep.OK},

		{name: "order", api: v1, results: 620, faults: "ignore-direction", want: rows{order: no, sorts: yes}, state: upkeep.Failed},
		{name: "order", api: v2, results: 620, faults: "ignore-direction", want: rows{order: no}, state: upkeep.Failed},
		{name: "by date", api: v1, results: 620, faults: "by-date", want: rows{order: no}, state: upkeep.Failed},
		{name: "twice, once", api: v1, results: 620, faults: "twice-once=7", want: rows{}, state: upkeep.OK},
		{name: "no order", api: v1, results: 620, faults: "unsorted", want: rows{order: no, sorts: no}, state: upkeep.Failed},
		{name: "no order", api: v2, results: 620, faults: "unsorted", want: rows{order: no, sorts: no}, state: upkeep.Failed},
		{name: "twice", api: v1, results: 620, faults: "twice=7", want: rows{order: no, counts: no, dated: no}, state: upkeep.Failed},
		{name: "least id", api: v1, results: 620, faults: "ignore-min-id", want: rows{"fs_min_id": no}, state: upkeep.Failed},
		{name: "least id", api: v2, results: 620, faults: "ignore-min-id", want: rows{"after_id": no}, state: upkeep.Failed},
		{name: "greatest id", api: v1, results: 620, faults: "ignore-max-id", want: rows{"fs_max_id": no, counts: notShown, dated: notShown}, state: upkeep.Failed},
		{name: "greatest id", api: v2, results: 620, faults: "ignore-max-id", want: rows{"before_id": no}, state: upkeep.Failed},
		{name: "dates", api: v1, results: 620, faults: "ignore-dates", want: rows{"fs_min_date": no, "fs_max_date": no, dated: notShown}, state: upkeep.Failed},
		{name: "dates", api: v2, results: 620, faults: "ignore-dates", want: rows{"after_date": no, "before_date": no, dated: notShown}, state: upkeep.Failed},
		{name: "first date", api: v1, results: 620, faults: "ignore-min-date", want: rows{"fs_min_date": no, dated: notShown}, state: upkeep.Failed},
		{name: "last date", api: v1, results: 620, faults: "ignore-max-date", want: rows{"fs_max_date": no, dated: notShown}, state: upkeep.Failed},
		{name: "first date", api: v2, results: 620, faults: "ignore-min-date", want: rows{"after_date": no, dated: notShown}, state: upkeep.Failed},
		{name: "last date", api: v2, results: 620, faults: "ignore-max-date", want: rows{"before_date": no, dated: notShown}, state: upkeep.Failed},
		{name: "refused dates", api: v1, results: 620, between: refusing("fs_min_date"), want: rows{"fs_min_date": no, "fs_max_date": no, dated: notShown}, state: upkeep.Failed},
		{name: "refused dates", api: v2, results: 620, between: refusing("after_date"), want: rows{"after_date": no, "before_date": no, dated: notShown}, state: upkeep.Failed},
		{name: "refused ids", api: v1, results: 30, between: refusing("fs_min_id"), want: rows{
			"fs_min_id": no, "fs_max_id": no, counts: notShown,
		}, state: upkeep.Failed},
		{name: "sort", api: v1, results: 620, faults: "ignore-sort", want: rows{sorts: no}, state: upkeep.Warning},
		{name: "sort", api: v2, results: 620, faults: "ignore-sort", want: rows{sorts: no}, state: upkeep.Warning},
		{name: "sort refused", api: v1, results: 620, between: refusing("fs_sort"), want: rows{sorts: no}, state: upkeep.Warning},
		{name: "no date_update", api: v1, results: 620, faults: "lack-update=1", want: rows{sorts: notShown}, state: upkeep.OK},
		{name: "counts", api: v1, results: 620, faults: "count-off=-1", want: rows{counts: no, dated: no}, state: upkeep.Failed},
		{name: "counts", api: v2, results: 620, faults: "count-off=1", want: rows{counts: no, dated: no}, state: upkeep.Warning},
		{name: "counts of all", api: v1, results: 620, faults: "count-all", want: rows{counts: no, dated: no}, state: upkeep.Failed},
		{name: "counts without bounds", api: v1, results: 620, between: func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/count") {
				without("fs_min_id", "fs_min_date")(r)
			}
		}, want: rows{counts: no, dated: no}, state: upkeep.Failed},
		{name: "headers", api: v2, results: 620, faults: "v2-pagination=missing", want: rows{counts: no, dated: no}, state: upkeep.Warning},
		{name: "headers", api: v2, results: 620, faults: "v2-pagination=zero", want: rows{counts: no, dated: no}, state: upkeep.Warning},
		{name: "headers", api: v2, results: 620, faults: "v2-pagination=more", want: rows{counts: no, dated: no}, state: upkeep.Warning},
		{name: "headers", api: v2, results: 620, faults: "v2-pagination=less", want: rows{counts: no, dated: no}, state: upkeep.Warning},
		{name: "everything", api: v1, results: 620, faults: "unsorted,twice=7,ignore-dates,ignore-min-id,ignore-max-id,page-cap=90", want: rows{
			order: no, "fs_min_id": no, "fs_max_id": no, "fs_min_date": no, "fs_max_date": no, counts: no, dated: no, sorts: no,
		}, state: upkeep.Failed},

		{name: "results that come", api: v1, results: 620, faults: "insert-every=1", state: upkeep.OK},
		{name: "results that come", api: v2, results: 620, faults: "insert-every=1", state: upkeep.OK},
		{name: "edits", api: v2, results: 620, faults: "edit-every=1", state: upkeep.OK},
	} {
		t.Run(fmt.Sprintf("%s %s %d %s", c.name, c.api, c.results, c.faults), func(t *testing.T) {
			w := newDoctorWorld(t, nil, secretForm(c.results))
			w.service.API, w.service.Faults, w.service.Zone = formservice.Both, formservice.Faults(c.faults), w.def.Source.Zone
			w.def.Source.API, w.o.Client.Transport = c.api, c.between
			r := w.examine(t)
			if r.Honours == nil {
				t.Fatalf("no table: %+v", r.Checks)
			}
			got := answersOf(r.Honours)
			if len(got) != 8 {
				t.Errorf("it has %d rows", len(got))
			}
			for asked, answer := range got {
				want, other := c.want[asked]
				if !other {
					want = upkeep.Yes
				}
				if i := slices.IndexFunc(r.Honours.Rows, func(r upkeep.Row) bool { return r.Asked == asked }); answer != want || r.Honours.Rows[i].Reason == "" {
					t.Errorf("%s: %s, want %s: %s", asked, answer, want, r.Honours.Rows[i].Reason)
				}
			}
			state := states(r)["specification"]
			at := slices.IndexFunc(r.Checks, func(c upkeep.Check) bool { return c.Name == "specification" })
			fault, broken := errors.AsType[*definition.Fault](r.Checks[at].Err)
			if state != c.state || broken != (state == upkeep.Failed) || broken && fault.Code != 65 || broken != (r.Err() != nil) {
				t.Errorf("the specification is %s, want %s; %v", state, c.state, r.Err())
			}
			if n := len(w.service.Log()); n > 1+upkeep.MostAsked || int64(n) != 1+r.Honours.Requests || int64(n) != r.Requests {
				t.Errorf("%d requests, told are %d, of them %d for the table", n, r.Requests, r.Honours.Requests)
			}
			shown := fmt.Sprintf("%+v", *r.Honours)
			for _, content := range []string{"secret", "770", "2024-03", "Complete", "\x1b"} {
				if strings.Contains(shown, content) {
					t.Errorf("it shows %q: %s", content, shown)
				}
			}
			if t.Failed() {
				for _, q := range w.service.Log() {
					t.Logf("%d. %s %s: %d, %d results", q.Number, q.Transaction, q.Query, q.Status, q.Results)
				}
			}
		})
	}
}
