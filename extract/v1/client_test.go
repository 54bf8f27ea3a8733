package v1_test

import (
	"net/http"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
)

func TestAnswersCompressedAndInLatin1(t *testing.T) {
	form := formservice.NewForm("f", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "é"}},
		[]formservice.Result{{ID: 1, Items: []formservice.Answer{{ID: "1", Values: []string{"naïve – €"}}}}})
	for _, faults := range []formservice.Faults{"", "no-gzip", "latin1", "latin1,no-gzip,old-root"} {
		server := &formservice.Server{Forms: []*formservice.Form{form}, Faults: faults}
		encoding := ""
		c := extracttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			encoding = r.Header.Get("Accept-Encoding")
			server.ServeHTTP(w, r)
		}), nil)
		page, err := c.Results(t.Context(), "f", extract.ResultsQuery{Headings: true})
		if err != nil {
			t.Fatalf("%s: %v", faults, err)
		}
		if got := string(page.Value(page.Cells(0)[0], 0)); got != "naïve – €" || page.Headings[0].Label != "é" {
			t.Errorf("%s: value %q, headings %+v", faults, got, page.Headings)
		}
		page.Release()
		if encoding != "gzip" {
			t.Errorf("Accept-Encoding %q", encoding)
		}
	}
}
