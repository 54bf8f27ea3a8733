package pipelines_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	form := formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: 4000, Seed: 6})
	quiet := newWorld(t, form).requests(nil)
	for every := range 2 {
		w := newWorld(t, formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: 4000, Seed: 6}))
		n := w.requests(&formservice.Faults{Seed: uint64(every), InsertEvery: 17 + 5*every})
		if n > 3*quiet {
			t.Errorf("one result in %d requests came late: %d requests, %d without", 17+5*every, n, quiet)
		}
	}
}

// requests runs a definition of everything, checks that no result is there twice, and
// returns how many requests it took.
func (w *world) requests(faults *formservice.Faults) int {
	w.t.Helper()
	if faults != nil {
		w.service.SetFaults(*faults)
	}
	def := w.definition(definition.Output{Path: "all/", Format: "ndjson", Partition: definition.PartitionMonth})
	report := w.run(def)
	seen := map[string]bool{}
	for _, p := range readManifest(w.t, w.path("all/_manifest.json")).Parts {
		for _, row := range readNDJSON(w.t, w.path("all/"+p.Path)) {
			id := fmt.Sprint(row["result_id"])
			if seen[id] {
				w.t.Errorf("result %s is there twice", id)
			}
			seen[id] = true
		}
	}
	if len(seen) < 4000 {
		w.t.Errorf("%d results instead of 4000", len(seen))
	}
	return int(report.Requests.All())
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
