package formservice

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

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
