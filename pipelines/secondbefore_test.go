package pipelines_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestSecondBeforeMoved: a result moves from the first day to the second one while both are
// read, and the first day's reading ends last. It is in both then, and the second day leaves
// it out to the first, which holds it no more when it is read again.
func TestSecondBeforeMoved(t *testing.T) {
	day := extracttest.Wall("2026-01-05")
	rs := make([]formservice.Result, 0, 30)
	for i := range 30 {
		rs = append(rs, pipelinestest.Result(int64(i+1), day.Add(time.Duration(i)*90*time.Minute).Format(formservice.WallTime), "a"))
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Answer"}}, rs)
	w := newWorld(t, form).byV2()
	w.service.SetFaults("page-cap=10,v2-strict-dates,v2-fractions=random")
	moved, read := make(chan struct{}), make(chan struct{})
	var once, done sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		page, first := q.Get("limit") != "1" && q.Get("before_date") != "", strings.HasPrefix(q.Get("before_date"), "2026-01-06")
		switch {
		case page && first && q.Get("after_id") != "":
			<-read
			time.Sleep(20 * time.Millisecond) // the second day's reading ends first
		case page && !first:
			<-moved
		}
		w.service.ServeHTTP(rw, r)
		switch {
		case page && first && q.Get("after_id") == "":
			once.Do(func() {
				if err := form.Update(pipelinestest.Result(1, "2026-01-06 12:00:00", "a")); err != nil {
					t.Error(err)
				}
				form.Delete(2) // so that the first day is read again
				close(moved)
			})
		case page && !first && q.Get("after_id") != "":
			done.Do(func() { close(read) })
		}
	}))
	t.Cleanup(server.Close)
	def := w.definition(definition.Output{Path: "form1.ndjson", Format: "ndjson"})
	def.Source.BaseURL = server.URL
	def.Extract.From, def.Extract.To, def.Extract.Window = day, day.AddDate(0, 0, 2), extract.Period{Days: 1}
	w.run(def)
	w.checkFile("form1.ndjson", pipelinestest.Truth(form, nil))
}
