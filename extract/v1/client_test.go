package v1_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

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

func TestReadBody(t *testing.T) {
	body := v1.FuzzSeeds[1] + strings.Repeat(" ", 200<<10)
	want := v1.Plain(v1.MustDecode(t, body))
	answering := func(body io.Reader) *v1.Client {
		return extracttest.Answering(t, formservice.DefaultKey, func(*http.Request) (*http.Response, error) {
			res := extracttest.Respond(200, "")
			res.Body, res.ContentLength = io.NopCloser(body), -1
			return res, nil
		}, func(cfg *v1.Config) { cfg.Retries = 0 })
	}
	for name, r := range map[string]io.Reader{
		"whole":       strings.NewReader(body),
		"byte":        iotest.OneByteReader(strings.NewReader(body)),
		"half":        iotest.HalfReader(strings.NewReader(body)),
		"data at EOF": iotest.DataErrReader(strings.NewReader(body)),
	} {
		p, err := answering(r).Results(t.Context(), "form1", extract.ResultsQuery{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := v1.Plain(p); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
		p.Release()
	}
	cut := io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF))
	p, err := answering(cut).Results(t.Context(), "form1", extract.ResultsQuery{})
	if e := extracttest.MustAs[*transport.NetworkError](t, err); e.Problem != io.ErrUnexpectedEOF.Error() || p != nil {
		t.Errorf("a cut body: err = %v, page %v", err, p)
	}
}
