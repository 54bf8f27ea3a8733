package pipelines_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestLateResultsBesideUndatedOnes reads everything of a form to which results come that
// were submitted in the past. The pass over the results without a date meets them, and
// is not made again for each.
func TestLateResultsBesideUndatedOnes(t *testing.T) {
	var quiet int64
	for _, faults := range []formservice.Faults{{}, {InsertEvery: 17}} {
		w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: 2000, Seed: 6}))
		w.service.SetFaults(faults)
		report := w.run(w.definition(months()))
		times := w.ids("months")
		if n := slices.Max(slices.Collect(maps.Values(times))); n > 1 || len(times) < 2000 {
			t.Errorf("%d results, some of them %d times", len(times), n)
		}
		if n := report.Requests.All(); quiet == 0 {
			quiet = n
		} else if n > 3*quiet {
			t.Errorf("%d requests, and %d where none came late", n, quiet)
		}
	}
}

// TestDateThatServiceDoesNotGoBy: a result shows a date of submission in the range, and
// the service finds it in no range. It belongs to the results without a date.
func TestDateThatServiceDoesNotGoBy(t *testing.T) {
	form := formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: 900, Seed: 6})
	truth := pipelinestest.Truth(form, nil)
	w := newWorld(t, form)
	var shown atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		w.service.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		if r.URL.Query().Get("fs_min_date") == "" && r.URL.Query().Get("fs_max_date") == "" {
			for _, tail := range bytes.Split(body, []byte("<result "))[1:] {
				if !bytes.Contains(tail, []byte("date_finish")) && !bytes.Contains(tail, []byte("date_start")) && bytes.Contains(tail, []byte("<metas>")) {
					body = bytes.Replace(body, tail, bytes.Replace(tail, []byte("<metas>"), []byte(`<metas><meta id="date_finish">2025-03-03 03:03:03</meta>`), 1), 1)
					shown.Add(1)
				}
			}
		}
		rw.WriteHeader(answer.Code)
		_, _ = rw.Write(body)
	}))
	t.Cleanup(server.Close)
	def := w.definition(definition.Output{Path: "all.ndjson", Format: "ndjson"})
	def.Source.BaseURL = server.URL
	w.run(def)
	if n := len(readNDJSON(t, w.path("all.ndjson"))); n != len(truth) || shown.Load() == 0 {
		t.Errorf("%d results instead of %d, and %d showed a date", n, len(truth), shown.Load())
	}
}
