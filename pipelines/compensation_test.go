package pipelines_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// TestLossThatADeletionHides: after the last day was read and before the
// first is, a result moves from the first to the last, and another one, read
// already, is deleted. The sums agree then; the moved result must be there
// all the same.
func TestLossThatADeletionHides(t *testing.T) {
	for name, out := range map[string]definition.Output{
		"file":       {Path: "form1.ndjson", Format: "ndjson"},
		"partitions": {Path: "days/", Format: "ndjson", Partition: definition.PartitionDay},
	} {
		t.Run(name, func(t *testing.T) {
			results := make([]formservice.Result, 0, 120)
			for i := range int64(120) {
				results = append(results, pipelinestest.Result(i+1, fmt.Sprintf("2026-01-%02d 10:00:00", i/20+1), "x"))
			}
			form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Label: "Answer"}}, results)
			w := newWorld(t, form)
			var once sync.Once
			lastRead := make(chan struct{})
			var closed sync.Once
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				from, reading := r.URL.Query().Get("fs_min_date"), strings.HasSuffix(r.URL.Path, "/results")
				if reading && from == "2026-01-01 00:00:00" {
					<-lastRead
					once.Do(func() {
						moved, _ := form.Get(5)
						moved.Metas = []formservice.Meta{{ID: "date_finish", Value: "2026-01-06 20:00:00"}}
						if err := form.Update(moved); err != nil || !form.Delete(50) {
							t.Errorf("cannot move and delete: %v", err)
						}
					})
				}
				w.service.ServeHTTP(rw, r)
				if reading && from == "2026-01-06 00:00:00" {
					closed.Do(func() { close(lastRead) })
				}
			}))
			defer server.Close()
			def := w.definition(out)
			def.Source.BaseURL = server.URL
			def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-01-07")
			def.Extract.Window = extract.Step{Days: 1}
			w.run(def)
			if name == "file" {
				w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
			} else {
				w.checkDataset("days", pipelinestest.Truth(form, nil))
			}
		})
	}
}

// TestSustainedMovesAreNeverSilent: before every request one unfinished result
// moves to the last day. The run may give up, loudly; what it writes is whole.
func TestSustainedMovesAreNeverSilent(t *testing.T) {
	for after := 1; after <= 8; after++ {
		results := make([]formservice.Result, 0, 120)
		for i := range int64(120) {
			results = append(results, pipelinestest.Result(i+1, fmt.Sprintf("2026-01-%02d 10:00:00", i/30+1), "x"))
		}
		form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Label: "Answer"}}, results)
		w := newWorld(t, form)
		next := int64(1)
		w.service.Before = func(r formservice.Request) {
			if r.Number < after || next > 90 {
				return
			}
			moved, _ := form.Get((next*37)%90 + 1) // of the first three days
			moved.Metas = []formservice.Meta{{ID: "date_finish", Value: "2026-01-04 20:00:00"}}
			if err := form.Update(moved); err != nil {
				t.Error(err)
			}
			next++
		}
		def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
		def.Source.Requests.Concurrency = 1
		def.Extract.From, def.Extract.To = extracttest.Wall("2026-01-01"), extracttest.Wall("2026-01-05")
		def.Extract.Window = extract.Step{Days: 1}
		_, err := pipelines.Run(t.Context(), def, options())
		var loud *reconcile.VerifyError
		switch {
		case errors.As(err, &loud):
			if _, err := os.Stat(w.path("form1.ndjson")); err == nil {
				t.Error("a run that gave up wrote its file")
			}
		case err != nil:
			t.Errorf("after %d: %v", after, err)
		default:
			if rows := readNDJSON(t, w.path("form1.ndjson")); len(rows) != 120 {
				t.Errorf("after %d: %d rows of 120, and the run said nothing", after, len(rows))
			}
		}
	}
}
