package formservice

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const resultsPath = "/api/users/acme/forms/form1/results"

// TestFaults reads lists of faults, and refuses what makes no sense.
func TestFaults(t *testing.T) {
	f := Faults("busy=0.2, busy-status=429,latency=20ms,old-root,strict-limit=false,redirect-to=http://x,headings=,").With("latency", time.Second)
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"busy": "0.2", "busy-status": "429", "latency": "1s", "old-root": "true", "strict-limit": "false", "redirect-to": "http://x", "headings": "", "slow": "",
	} {
		if got := f.Value(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for list, want := range map[string]string{
		"busi=1":            `unknown fault "busi"; use seed, busy, `,
		"busy":              "busy=true",
		"busy=2":            "busy=2; give a rate from 0 to 1",
		"cut=NaN":           "a rate",
		"busy-status=500":   "give 200|429|503",
		"control=yes":       "give raw|ref",
		"headings=no":       "give id|nested|items",
		"html-status=99":    "give a status",
		"page-cap=-1":       "give a number, 0 or more",
		"page-cap=0x10":     "give a number",
		"seed=-1":           "give a seed",
		"count-off=x":       "give a whole number",
		"date-header-off=5": "date-header-off=5",
		"latency=5":         "latency=5",
		"slow-delay=-5s":    "a duration, 0 or more",
		"old-root=yes":      "give flag",
		"=":                 "unknown fault",
		"v2-fractions=some": "none|random",
		"v2-pagination=no":  "missing|zero|more|less",
	} {
		if err := Faults(list).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", list, err, want)
		}
	}
	if help := FaultsHelp(); strings.Count(help, "\n") != len(table) || !strings.Contains(help, "  busy-first ") {
		t.Errorf("help:\n%s", help)
	}
}

// TestSingleFaults asks once under each fault that strikes single requests.
func TestSingleFaults(t *testing.T) {
	s := startSmall(t)
	s.Key = "key"
	const noAnswer, cut = -2, -3
	for _, c := range []struct {
		faults Faults
		status int // or noAnswer
		code   int // or cut: the body ends early; -4: not an envelope
		header string
	}{
		{"busy=1", 503, 3, "Retry-After: "},
		{"busy=1,busy-status=429,retry-after=7", 429, 3, "Retry-After: 7"},
		{"busy=1,busy-status=200", 200, 3, "Content-Type: text/xml; charset=UTF-8"},
		{"busy=1,old-root,latin1", 503, 3, "Content-Type: text/xml; charset=ISO-8859-1"},
		{"html=1", 502, -4, "Content-Type: text/html"},
		{"html=1,html-status=404", 404, -4, "Content-Type: text/html"},
		{"redirect=1", 302, -4, "Location: https://elsewhere.invalid" + resultsPath + "?fs_api_key=key&fs_limit=3"},
		{"redirect=1,redirect-to=http://x.test", 302, -4, "Location: http://x.test" + resultsPath + "?fs_api_key=key&fs_limit=3"},
		{"cut=1", 200, cut, ""},
		{"cut=1,no-gzip", 200, cut, ""},
		{"truncate=1", 200, -4, ""},
		{"empty=1", 200, -4, "Content-Length: 0"},
		{"reset=1", noAnswer, 0, ""},
		{"slow=1,slow-delay=1us", 200, -1, "Content-Length: "},
	} {
		t.Run(string(c.faults), func(t *testing.T) {
			s.Reset()
			s.SetFaults(c.faults)
			r, err := s.try(t, "GET", resultsPath+"?fs_api_key=key&fs_limit=3")
			if got := s.Log(); len(got) != 1 || got[0].Fault == NoFault {
				t.Errorf("log %+v", got)
			}
			if c.status == noAnswer || c.code == cut {
				if err == nil || c.code == cut && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("error %v after %q", err, r.body)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.status != c.status {
				t.Errorf("HTTP %d, want %d", r.status, c.status)
			}
			if name, value, ok := strings.Cut(c.header, ": "); ok && r.header.Get(name) != value {
				t.Errorf("%s is %q, want %q", name, r.header.Get(name), value)
			}
			if c.code == -4 {
				if strings.Contains(r.body, "</fs_re") {
					t.Errorf("a whole envelope: %s", r.body)
				}
				return
			}
			if code := r.root(t).code(t); code != c.code {
				t.Errorf("error %d, want %d", code, c.code)
			}
		})
	}
}

// TestBehaviours asks under faults that change every answer, as far as no reader of the answers
// has a test that names them.
func TestBehaviours(t *testing.T) {
	s := startSmall(t)
	for _, c := range []struct {
		faults, query string
		want          []int64
	}{
		{"bare-max-midnight", "fs_max_date=2026-01-02", []int64{13, 10}},
		{"strict-limit", "fs_limit=99&fs_min_id=22", []int64{22}},
		{"twice=11", "fs_limit=4", []int64{22, 22, 21, 20}},
	} {
		s.SetFaults(Faults(c.faults))
		equalIDs(t, c.faults+" "+c.query, s.ids(t, c.query), c.want...)
	}
	s.SetFaults("strict-limit")
	if code := s.get(t, "results", "fs_limit=100").code(t); code != 2 {
		t.Errorf("strict fs_limit=100: error %d, want 2", code)
	}
	for _, c := range []struct {
		faults Faults
		want   string
	}{
		{"", "1"},
		{"count-all", "7"},
		{"count-all,count-off=-2", "5"},
		{"count-off=3", "4"},
		{"count-off=-3", "0"},
	} {
		s.SetFaults(c.faults)
		if got := s.get(t, "results/count", "fs_min_id=22").one(t, "count").Text; got != c.want {
			t.Errorf("%s: count %s, want %s", c.faults, got, c.want)
		}
	}
	s.SetFaults("old-root,errors-200")
	r := s.send(t, "GET", resultsPath, "fs_limit=0")
	if root := r.root(t); root.XMLName.Local != "fs_result" || root.code(t) != 2 || r.status != 200 {
		t.Errorf("HTTP %d, %s", r.status, r.body)
	}
}

// reads reads a list of faults.
func reads(t *testing.T, list Faults) *faults {
	t.Helper()
	f, err := list.read()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRatesAreDeterministic checks that equal requests meet equal faults and
// that the rates are kept.
func TestRatesAreDeterministic(t *testing.T) {
	const list = "busy=0.1,html=0.1,empty=0.1,cut=0.1,truncate=0.1,slow=0.1,redirect=0.1,reset=0.1,busy-first=3"
	faults, other, busy := reads(t, list), reads(t, list+",seed=1"), reads(t, "busy=0.1")
	counts := map[Fault]int{}
	for n := 1; n <= 10_000; n++ {
		f := faults.decide(n)
		counts[f]++
		if f != faults.decide(n) || n <= 3 && f != FaultBusy {
			t.Fatalf("request %d meets %q", n, f)
		}
	}
	for f, n := range counts {
		if f != NoFault && (n < 400 || n > 1200) {
			t.Errorf("%s: %d of 10,000", f, n)
		}
	}
	if len(counts) != 9 {
		t.Errorf("faults met: %v", counts)
	}
	same := 0
	for n := 4; n <= 1000; n++ {
		if other.decide(n) == busy.decide(n) {
			same++
		}
	}
	if same > 900 {
		t.Error("the seed changes nothing")
	}
}

func TestPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Faults: "per-minute=2,retry-after=30"}
		got := make([]int, 0, 6)
		for range 2 {
			for range 3 {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", resultsPath+"/count?fs_api_key="+DefaultKey, nil))
				got = append(got, w.Code)
			}
			time.Sleep(time.Minute)
		}
		if want := []int{200, 200, 429, 200, 200, 429}; !slices.Equal(got, want) {
			t.Errorf("statuses %v, want %v", got, want)
		}
	})
}

func TestGzip(t *testing.T) {
	s := &Server{Forms: []*Form{smallForm()}}
	for accept, want := range map[string]string{
		"": "", "gzip": "gzip", "deflate, gzip;q=0.5": "gzip", "br": "",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", resultsPath+"?fs_api_key="+DefaultKey, nil)
		r.Header.Set("Accept-Encoding", accept)
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q: %q, want %q", accept, got, want)
		}
		if w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
			t.Errorf("Content-Length %s of %d bytes", w.Header().Get("Content-Length"), w.Body.Len())
		}
	}
}
