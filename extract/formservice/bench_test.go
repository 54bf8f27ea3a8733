package formservice

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkPage measures full pages of a form of ten million results, spread
// over all of it, without HTTP's own work.
func BenchmarkPage(b *testing.B) {
	f := Generate(GenerateOptions{Results: MaxResults, Items: 20})
	s := &Server{Forms: []*Form{f}}
	last := f.stored.base.id(f.stored.base.n - 1)
	b.ReportAllocs()
	for i := range b.N {
		id := f.stored.base.o.FirstID + int64(i)*7_919_003%(last-f.stored.base.o.FirstID)
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(b.Context(), "GET", "/api/users/acme/forms/form1/results?fs_api_key="+DefaultKey+
			"&fs_sort_direction=asc&fs_min_date=2025-01-01%2000:00:00&fs_max_date=2025-12-31%2023:59:59&fs_min_id="+
			strconv.FormatInt(id, 10), nil)
		s.ServeHTTP(w, r)
		b.SetBytes(int64(w.Body.Len()))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
}

// BenchmarkFirstPage measures the first page of an hour's window, whose late
// results must be looked for in the ten days before.
func BenchmarkFirstPage(b *testing.B) {
	f := Generate(GenerateOptions{Results: MaxResults})
	s := &Server{Forms: []*Form{f}}
	from := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	for i := range b.N {
		t := from.Add(time.Duration(i%1000) * time.Hour)
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(b.Context(), "GET", "/api/users/acme/forms/form1/results?fs_api_key="+DefaultKey+
			"&fs_sort_direction=asc&fs_min_date="+strings.ReplaceAll(t.Format(WallTime), " ", "%20")+
			"&fs_max_date="+strings.ReplaceAll(t.Add(time.Hour-time.Second).Format(WallTime), " ", "%20"), nil)
		s.ServeHTTP(w, r)
	}
}

// BenchmarkCount measures counts of half a year of ten million results.
func BenchmarkCount(b *testing.B) {
	f := Generate(GenerateOptions{Results: MaxResults})
	q := newResultsQuery()
	q.dated = true
	q.from, q.to = f.stored.base.from+10*daySize, f.stored.base.from+190*daySize
	for range b.N {
		f.stored.count(q.selection)
	}
}

// BenchmarkFeed measures the first pages of what changed last, as a reader of
// changes asks for them, without HTTP's own work.
func BenchmarkFeed(b *testing.B) {
	const feed = "fs_sort=date_update&fs_sort_direction="
	for _, results := range []int{200_000, 2_000_000} {
		for _, query := range []string{
			feed + "desc", feed + "desc&fs_page=5", feed + "desc&fs_page=20", feed + "asc", "fs_sort=user_ip&fs_limit=20",
		} {
			s := &Server{Forms: []*Form{Generate(GenerateOptions{Results: results})}}
			b.Run(strconv.Itoa(results)+"/"+query, func(b *testing.B) {
				for range b.N {
					w := httptest.NewRecorder()
					r := httptest.NewRequestWithContext(b.Context(), "GET", resultsPath+"?fs_api_key="+DefaultKey+"&"+query, nil)
					s.ServeHTTP(w, r)
					if w.Code != 200 {
						b.Fatal(w.Body)
					}
				}
			})
		}
	}
}
