package formservice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestV2Truth finds every value of a generated form in both generations.
func TestV2Truth(t *testing.T) {
	f := Generate(GenerateOptions{Results: 1500, Items: 28, Control: true})
	s := startService(t, &Server{Forms: []*Form{f}, API: Both})
	for _, faults := range []Faults{"", "no-gzip,v2-number-ids,v2-number-metas,v2-fractions=none"} {
		s.SetFaults(faults)
		var got []v2Result
		for page := 1; page <= 3; page++ {
			got = append(got, s.v2Results(t, fmt.Sprintf("limit=500&sort_direction=asc&page=%d", page))...)
		}
		i := 0
		f.Each(func(r Result) bool {
			if err := differs(t, got[i], r, f.Metas); err != "" {
				t.Errorf("%s: result %d: %s", faults, r.ID, err)
			}
			i++
			return !t.Failed()
		})
		if i != len(got) {
			t.Errorf("%d results, want %d", len(got), i)
		}
	}
}

// differs compares what v2 shows with what is stored, in UTC.
func differs(t *testing.T, got v2Result, r Result, metas []string) string {
	t.Helper()
	if got.id(t) != r.ID {
		return fmt.Sprintf("has the id %d", got.id(t))
	}
	for _, id := range metas {
		want, there := r.Meta(id)
		if at, err := time.Parse(WallTime, want); err == nil {
			want = at.Format(time.RFC3339)
			if len(got.metas[id]) > len(want) {
				want = at.Format("2006-01-02T15:04:05.000Z")
			}
		}
		if value, shown := got.metas[id]; value != readable(want) || shown != there && want != "" {
			return fmt.Sprintf("%s is %q, want %q", id, value, want)
		}
	}
	answers := got.answers()
	for _, a := range r.Items {
		want, _ := r.Values(a.ID)
		if len(want) == 1 && want[0] == "" && len(answers[a.ID]) == 0 {
			continue
		}
		for i := range want {
			want[i] = readable(want[i])
		}
		if !slices.Equal(answers[a.ID], want) {
			return fmt.Sprintf("item %s is %q, want %q", a.ID, answers[a.ID], want)
		}
	}
	return ""
}

// TestV2DatesByReading holds bounds, counts and sorts to a look at each result,
// in zones whose clocks change, with fractions and without.
func TestV2DatesByReading(t *testing.T) {
	f := Generate(GenerateOptions{Results: 3000, From: date("2011-10-25"), To: date("2012-04-15")})
	for i := range 20 {
		f.insertAny(uint64(i) * 7919)
		f.editAny(uint64(i) * 104729)
	}
	var all []record
	f.Each(func(r Result) bool {
		all = append(all, newRecord(r))
		return true
	})
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"UTC", "America/Chicago", "Europe/Zurich", "Australia/Lord_Howe", "Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, shapes := range []Faults{"", "v2-fractions=random", "v2-fractions=random,v2-seconds"} {
			for range 15 {
				q := newResultsQuery()
				q.after = date("2011-10-24").UnixMilli() + rng.Int64N(170*daySize*1000)
				q.before = q.after + rng.Int64N(40*daySize*1000)
				q.dated, q.desc, q.limit = true, rng.IntN(2) == 0, 5000
				c := newClock(zone, reads(t, shapes))
				if c.seconds {
					q.after, q.before = q.after/1000*1000, q.before/1000*1000
				}
				byReading(t, f, all, q, c)
			}
		}
	}
}

func byReading(t *testing.T, f *Form, all []record, q resultsQuery, c clock) {
	t.Helper()
	q.moment = c.compared
	var want, got []int64
	for _, rec := range all {
		if rec.date == never {
			continue
		}
		if at := c.compared(rec.id, rec.date); q.after < at && at < q.before {
			want = append(want, rec.id)
		}
	}
	if q.desc {
		slices.Reverse(want)
	}
	f.pick(&q, func(r Result) { got = append(got, r.ID) })
	if n := f.count(&q); !slices.Equal(got, want) || n != len(want) {
		t.Fatalf("%v %+v: %d results, counted %d, want %d", c, q.selection, len(got), n, len(want))
	}
}
