package cli

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// formPlan is a plan of 9,844 results with a date, in windows of which one was counted.
func formPlan(undated *pipelines.PlannedUndated, left *pipelines.Unfinished) *pipelines.FormPlan {
	total := int64(141)
	results := int64(128)
	if undated != nil {
		total, results = total+undated.Requests, results+undated.Requests
	}
	return &pipelines.FormPlan{
		Form: "feedback", Timezone: "America/Chicago", Unfinished: left,
		Windows: []pipelines.PlannedWindow{{Results: new(int64(98)), Requests: new(int64(1))}, {Range: load.Range{}}},
		Planned: pipelines.Planned{
			Results: new(int64(9844)), Undated: undated,
			Requests: pipelines.PlannedRequests{Results: &results, Feed: new(int64(4)), Counts: new(int64(10)), Total: &total, Planned: 9},
		},
	}
}

func textOf(p *pipelines.FormPlan) string {
	return planText(&pipelines.PlanReport{Pipeline: "feedback", Forms: []*pipelines.FormPlan{p}})
}

// TestPlanExplainsItself: the requests that a plan names add up to its total, the results
// without a date have a pass of their own, and what ? means stands below the table.
func TestPlanExplainsItself(t *testing.T) {
	for name, c := range map[string]struct {
		plan *pipelines.FormPlan
		want []string
	}{
		"dated": {formPlan(nil, nil), []string{"results   9,844\n", "about 141: 128 for results, 3 to ask what changed, 10 for counts; this plan itself sent 9 count requests\n"}},
		"undated": {formPlan(&pipelines.PlannedUndated{Results: 156, Requests: 101}, nil), []string{
			"results   10,000: 9,844 with a date and 156 without\n", "  without a date  ", "about 242: 128 for results with a date, 101 for those without, 3 to ask what changed, 10 for counts;",
		}},
		"resumed": {formPlan(nil, &pipelines.Unfinished{RunID: "run1", Windows: 17, Results: 2869, Requests: 28}), []string{
			"at most about 141: ", "resume    run run1 ended early after 2,869 results and 17 complete windows; if the run goes on from there, it sends at least 28 requests less\n",
		}},
	} {
		got := textOf(c.plan)
		for _, want := range append(c.want, "  ?: not counted separately, because that costs more requests than it saves\n") {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing:\n%s", name, want, got)
			}
		}
		row, _, _ := strings.Cut(regexp.MustCompile(`about .*`).FindString(got), ";")
		sum := 0
		for i, n := range regexp.MustCompile(`\d+`).FindAllString(row, -1) {
			number, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				number = -number
			}
			sum += number
		}
		if sum != 0 {
			t.Errorf("%s: %s: the sum is off by %d", name, row, sum)
		}
	}
	counted := formPlan(nil, nil)
	counted.Windows = counted.Windows[:1]
	if got := textOf(counted); strings.Contains(got, "?") {
		t.Errorf("all windows were counted:\n%s", got)
	}
	nothing := formPlan(nil, nil)
	nothing.Results = nil
	if got := textOf(nothing); !strings.Contains(got, "  ?: unknown, because nothing was counted\n") {
		t.Errorf("nothing was counted:\n%s", got)
	}
	long := formPlan(nil, nil)
	minutes, share := 2.6, 1.41
	long.Budget = pipelines.Budget{PerMinute: 60, Minutes: &minutes, PerDay: 100, DayShare: &share}
	for n, more := range map[int]bool{11: false, 12: true} {
		long.Windows = make([]pipelines.PlannedWindow, n)
		got := planText(&pipelines.PlanReport{Forms: []*pipelines.FormPlan{long, long}, Patterns: []string{"x*"}})
		if strings.Contains(got, "... 2 more ...") != more || strings.Contains(got, "all forms") ||
			!strings.Contains(got, "about 3 minutes, at 60") || !strings.Contains(got, "141.0 % of 100 requests a day: the run needs several days\n") {
			t.Errorf("%d windows:\n%s", n, got)
		}
	}
}

func TestReplayRows(t *testing.T) {
	ranges := []load.Range{{To: wallAt("2026-01-02 00:00:00")}, {From: wallAt("2026-02-01 00:00:00")}}
	rows := replayRows([]pipelines.FormReplay{{Form: "a", Results: 7, Ranges: ranges}, {Form: "b", Results: 2, Whole: true}})
	const want = "FORM,REJECTED,READ AGAIN\na,7,the first result to 2026-01-02 00:00:00 (exclusive)\n,,2026-02-01 00:00:00 to the last result\nb,2,the whole range\n"
	got := ""
	for _, row := range rows {
		got += strings.Join(row, ",") + "\n"
	}
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
