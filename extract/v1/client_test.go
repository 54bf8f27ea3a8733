package v1_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	v1 "github.com/formetl/formetl/extract/v1"
)

func TestAnswersCompressedAndInLatin1(t *testing.T) {
	form := formservice.NewForm("f", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "é"}},
		[]formservice.Result{{ID: 1, Items: []formservice.Answer{{ID: "1", Values: []string{"naïve – €"}}}}})
	for _, faults := range []formservice.Faults{{}, {NoGzip: true}, {Latin1: true}, {Latin1: true, NoGzip: true, OldRoot: true}} {
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

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestAnswerSizeIsBound, whatever the transaction, also where a small body
// swells when it is decompressed.
func TestAnswerSizeIsBound(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		c := extracttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body io.Writer = w
			if compressed {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				defer func() { _ = z.Close() }()
				body = z
			}
			for r.Context().Err() == nil {
				if _, err := io.CopyN(body, endless{}, 64<<10); err != nil {
					return
				}
			}
		}), func(cfg *v1.Config) { cfg.Retries = 0 })
		if c.Bound() != v1.MaxAnswer {
			t.Errorf("the bound is %d", c.Bound())
		}
		c.SetBound(1 << 20)
		_, err := c.Results(t.Context(), "form1", extract.ResultsQuery{})
		_, countErr := c.Count(t.Context(), "form1", extract.CountQuery{})
		for _, err := range []error{err, countErr} {
			if e := extracttest.MustAs[*transport.AnswerError](t, err); !strings.Contains(e.Problem, "larger than the bound") {
				t.Errorf("err = %v", err)
			}
		}
	}
}
