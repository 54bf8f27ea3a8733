package extract_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

// readPlan plans a range and reads its windows side by side, as a run does.
// It returns how often each id came.
func readPlan(ctx context.Context, c *v1.Client, form string, rng extract.Range) (*extract.Plan, map[int64]int, error) {
	plan, err := extract.NewPlan(ctx, rng, func(ctx context.Context, w extract.Window) (int64, error) {
		return c.Count(ctx, form, extract.CountQuery{Window: w})
	})
	if err != nil {
		return nil, nil, err
	}
	r := extract.NewReader(c, form, extract.ResultsQuery{})
	windows := make([][]int64, len(plan.Windows))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(transport.DefaultConcurrency)
	for i, w := range plan.Windows {
		if w.Count == 0 {
			continue
		}
		group.Go(func() error {
			wr := r.Window(w.Window, extract.IDRange{}, w.Count)
			for {
				p, err := wr.Next(ctx)
				if err != nil || p == nil {
					return err
				}
				windows[i] = append(windows[i], p.IDs()...)
				p.Release()
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	came := map[int64]int{}
	for _, ids := range windows {
		for _, id := range ids {
			came[id]++
		}
	}
	return plan, came, nil
}

// TestRequestCost takes whole forms over real HTTP: every result once, and no
// more requests than design.md's bound, the count of the verification included.
func TestRequestCost(t *testing.T) {
	year := extracttest.Window("2025-01-01", "2026-01-01")
	for _, tc := range []struct {
		name string
		o    formservice.GenerateOptions
		rng  extract.Range
		most int // 0: the bound of design.md
	}{
		{"30,000, even", formservice.GenerateOptions{Results: 30_000, Even: true, Items: 1, NoHostile: true, NoUndated: true}, extract.Range{Window: year}, 0},
		{"20,000 with bursts, quiet days and late ones", formservice.GenerateOptions{Results: 20_000, Items: 2}, extract.Range{Window: year}, 0},
		{"20,000 without a lower bound", formservice.GenerateOptions{Results: 20_000, Items: 2}, extract.Range{Window: extract.Window{To: year.To}}, 0},
		{"300 over a year", formservice.GenerateOptions{Results: 300, Items: 2}, extract.Range{Window: year}, 0},
		{"300 over a year, by months", formservice.GenerateOptions{Results: 300, Items: 2}, extract.Range{Window: year, Partition: extract.UnitMonth}, 40},
	} {
		t.Run(tc.name, func(t *testing.T) {
			form := formservice.Generate(tc.o)
			server := &formservice.Server{Forms: []*formservice.Form{form}, Faults: formservice.Faults{NoGzip: true}}
			listener := httptest.NewServer(server)
			defer listener.Close()
			c := extracttest.NewClient(t, v1.Config{BaseURL: listener.URL, Account: formservice.DefaultAccount, Config: transport.Config{Key: transport.NewSecret(formservice.DefaultKey)}})
			plan, came, err := readPlan(t.Context(), c, "form1", tc.rng)
			if err != nil {
				t.Fatal(err)
			}
			missing, doubled := 0, 0
			for r := range form.Each {
				switch n := came[r.ID]; {
				case n == 0 && dateOf(r) != "":
					missing++
				case n > 1:
					doubled++
				}
			}
			if missing > 0 || doubled > 0 || int64(len(came)) != plan.Total {
				t.Errorf("%d results are missing, %d came more than once; %d came, the plan counted %d", missing, doubled, len(came), plan.Total)
			}
			counts, pages := server.Counts()[formservice.TransactionCount], server.Counts()[formservice.TransactionResults]
			most := tc.most
			if most == 0 {
				most = mostRequests(int(plan.Total))
			}
			t.Logf("%d results: %d counts + %d pages + 1 = %d requests, bound %d", plan.Total, counts, pages, counts+pages+1, most)
			if counts+pages+1 > most {
				t.Errorf("%d requests, the bound is %d", counts+pages+1, most)
			}
			if counts != plan.Requests {
				t.Errorf("%d counts, the plan says %d", counts, plan.Requests)
			}
		})
	}
}
