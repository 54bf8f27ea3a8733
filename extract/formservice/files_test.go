package formservice

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// startFiles serves one result, whose files have the given names.
func startFiles(t *testing.T, names ...string) service {
	t.Helper()
	links := make([]string, len(names))
	for i, name := range names {
		links[i] = MadeFiles + name
	}
	items := []Item{{ID: "3", Type: "file", Index: 1}}
	results := []Result{finished(12, "2026-01-01 10:00:00", Answer{ID: "3", Values: links})}
	return startService(t, &Server{Forms: []*Form{NewForm("form1", items, results)}, API: Both, Files: true})
}

// fileOf describes a body as Server.FileOf does.
func fileOf(body string) File {
	sum := sha256.Sum256([]byte(body))
	return File{int64(len(body)), hex.EncodeToString(sum[:])}
}

// TestFileLinks reads links in both generations, and follows them as they stand.
func TestFileLinks(t *testing.T) {
	names := []string{
		"f-1-2-12_cv.pdf", "f-1-3-12_two%20W%C3%B6rter.PDF", "..%2f..%2fx", "f-1-4-12_" + strings.Repeat("long", 200), ".profile", "CON.txt",
		"100%25.png", "%00", "%2e%2e",
	}
	s := startFiles(t, names...)
	links := regexp.MustCompile(`(?:<value[^>]*>|"value":")` + s.url + `/acme/files/([^"<]+)["<]`)
	for generation, body := range map[string]string{
		V1: s.send(t, "GET", resultsPath, "").body, V2: s.v2(t, "GET", "/forms/form1/results").body,
	} {
		var found []string
		for _, m := range links.FindAllStringSubmatch(body, -1) {
			found = append(found, m[1])
		}
		if !slices.Equal(found, names) {
			t.Errorf("%s: links to %q\n%s", generation, found, body)
		}
	}
	s.Reset()
	different := map[File]bool{}
	for _, name := range names {
		r := s.sendRaw(t, "GET", "/acme/files/"+name, "")
		if got := fileOf(r.body); r.status != 200 || !slices.Equal(s.FileOf(name), []File{got}) || r.header.Get("Content-Length") != fmt.Sprint(got.Size) {
			t.Errorf("%s: HTTP %d, %v, want %v\n%v", name, r.status, got, s.FileOf(name), r.header)
		}
		different[fileOf(r.body)] = true
	}
	log := s.Log()
	if len(different) != len(names) || s.Counts()[TransactionFile] != len(names) || len(log) != len(names) {
		t.Errorf("%d files; counted %v", len(different), s.Counts())
	}
	if r := log[1]; r.File != "f-1-3-12_two Wörter.PDF" || r.Transaction != TransactionFile || r.API+r.Form != "" || r.Account != "acme" || r.Status != 200 || r.Secret {
		t.Errorf("log %+v", r)
	}

	req := httptest.NewRequestWithContext(t.Context(), "GET", "https://safe.test"+resultsPath+"?fs_api_key="+s.key(), nil)
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, req); !strings.Contains(w.Body.String(), ">https://safe.test/acme/files/f-1-2-12_cv.pdf<") {
		t.Errorf("links by TLS: %s", w.Body)
	}
}

// TestFileRequests asks for a file in the ways that there are.
func TestFileRequests(t *testing.T) {
	s := startFiles(t)
	const target = "/acme/files/f-1-2-12_cv.pdf"
	whole, err := s.try(t, "GET", target)
	etag := whole.header.Get("ETag")
	if err != nil || whole.header.Get("Content-Type") != "application/pdf" || whole.header.Get("Accept-Ranges") != "bytes" || whole.header.Get("Last-Modified") == "" {
		t.Fatalf("%v, %v", err, whole.header)
	}
	for _, c := range []struct {
		method, target string
		headers        []string
		status         int
		body           string // "-": of no matter
		secret         bool
	}{
		{"HEAD", target, nil, 200, "", false},
		{"GET", target, []string{"Range: bytes=10-"}, 206, whole.body[10:], false},
		{"GET", target, []string{"Range: bytes=10-12"}, 206, whole.body[10:13], false},
		{"GET", target, []string{"Range: bytes=10-", "If-Range: " + etag}, 206, whole.body[10:], false},
		{"GET", target, []string{"Range: bytes=10-", `If-Range: "x"`}, 200, whole.body, false},
		{"GET", target, []string{"Range: bytes=10-", "If-Range: " + whole.header.Get("Last-Modified")}, 206, whole.body[10:], false},
		{"GET", target, []string{"Range: bytes=999999-"}, 416, "-", false},
		{"GET", target, []string{"If-None-Match: " + etag}, 304, "", false},
		{"GET", target + "?x=1", nil, 200, whole.body, false},
		{"POST", target, nil, 405, "-", false},
		{"GET", "/other/files/f-1-2-12_cv.pdf", nil, 404, "-", false},
		{"GET", "/acme/files/", nil, 404, "-", false},
		{"GET", "/acme/files/a/b", nil, 404, "-", false},
		{"GET", target, []string{"Authorization: bearer x"}, 400, "-", true},
		{"GET", target + "?x=1&fs_api_key=x", nil, 400, "-", true},
		{"GET", target + "?x=" + DefaultKey, nil, 400, "-", true},
	} {
		s.Reset()
		r, err := s.try(t, c.method, c.target, c.headers...)
		if err != nil || r.status != c.status || c.body != "-" && r.body != c.body {
			t.Errorf("%s %s %q: HTTP %d with %d bytes, error %v", c.method, c.target, c.headers, r.status, len(r.body), err)
		}
		if log := s.Log(); len(log) != 1 || log[0].Status != c.status || log[0].Secret != c.secret || strings.Contains(log[0].Query, DefaultKey) {
			t.Errorf("%s %s %q: logged %+v", c.method, c.target, c.headers, log)
		}
	}
	without := startService(t, &Server{})
	if r := without.sendRaw(t, "GET", target, ""); r.status != 404 || without.Log()[0].Transaction != "" {
		t.Errorf("a service without files: HTTP %d", r.status)
	}
}

// TestFileFaults asks for a file under each fault of files.
func TestFileFaults(t *testing.T) {
	s := startFiles(t)
	const target = "/acme/files/f-1-2-12_cv.pdf"
	for _, c := range []struct {
		faults Faults
		status int
		header string
		fault  Fault
	}{
		{"busy=1,html=1,cut=1", 200, "Content-Type: application/pdf", NoFault}, // those of the API
		{"file-missing=1", 404, "", FaultMissing},
		{"file-login=1", 200, "Content-Type: text/html; charset=utf-8", FaultLogin},
		{"file-redirect=1", 302, "Location: https://elsewhere.invalid" + target, FaultRedirect},
		{"file-redirect=1,redirect-to=http://x.test", 302, "Location: http://x.test" + target, FaultRedirect},
		{"file-busy=1", 503, "Retry-After: ", FaultBusy},
		{"file-busy=1,busy-status=429,retry-after=7", 429, "Retry-After: 7", FaultBusy},
		{"file-unsized=1", 200, "Content-Length: ", NoFault},
		{"file-unsized=1", 200, "ETag: ", NoFault},
	} {
		s.Reset()
		s.SetFaults(c.faults)
		r, err := s.try(t, "GET", target)
		if name, value, ok := strings.Cut(c.header, ": "); err != nil || r.status != c.status || ok && r.header.Get(name) != value {
			t.Errorf("%s: HTTP %d, %v", c.faults, r.status, r.header)
		}
		if log := s.Log(); len(log) != 1 || log[0].Status != c.status || log[0].Fault != c.fault {
			t.Errorf("%s: logged %+v", c.faults, log)
		}
		if right := slices.Equal(s.FileOf("f-1-2-12_cv.pdf"), []File{fileOf(r.body)}); right != (c.fault == NoFault) {
			t.Errorf("%s: the right bytes: %v", c.faults, right)
		}
	}

	s.SetFaults("file-cut=1")
	whole := ""
	for tries := 0; ; tries++ {
		r, err := s.try(t, "GET", target, fmt.Sprintf("Range: bytes=%d-", len(whole)))
		whole += r.body
		if err == nil {
			break // a single byte is not cut
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || r.body == "" || tries > 100 {
			t.Fatalf("try %d: %v after %d bytes", tries, err, len(r.body))
		}
	}
	s.SetFaults("file-cut=1,file-unsized=1")
	if r, err := s.try(t, "GET", target); !errors.Is(err, io.ErrUnexpectedEOF) || r.body == "" {
		t.Errorf("an unsized file that is cut: %v after %d bytes", err, len(r.body))
	}

	s.SetFaults("file-change=1")
	changed := s.sendRaw(t, "GET", target, "")
	s.SetFaults("")
	again := s.sendRaw(t, "GET", target, "")
	if want := []File{fileOf(whole), fileOf(changed.body)}; want[0].Size == want[1].Size || !slices.Equal(s.FileOf("f-1-2-12_cv.pdf"), want) {
		t.Errorf("the file was changed to %v, want %v", s.FileOf("f-1-2-12_cv.pdf"), want)
	}
	if again.body != changed.body || again.header.Get("ETag") != changed.header.Get("ETag") {
		t.Error("a file that was changed does not stay so")
	}
	r, err := s.try(t, "GET", target, "Range: bytes=10-", "If-Range: "+again.header.Get("ETag"))
	if err != nil || r.status != http.StatusPartialContent {
		t.Errorf("HTTP %d, %v", r.status, err)
	}

	s.Decide = func(r Request) Fault {
		if strings.HasSuffix(r.File, ".png") {
			return FaultMissing
		}
		return NoFault
	}
	if r := s.sendRaw(t, "GET", "/acme/files/x.png", ""); r.status != http.StatusNotFound {
		t.Errorf("HTTP %d by a test's decision", r.status)
	}
}

// TestGeneratedFiles checks the names and the sizes of the files of a generated form.
func TestGeneratedFiles(t *testing.T) {
	const results, most = 4000, 50_000_000
	f := Generate(GenerateOptions{Results: results})
	s := &Server{Forms: []*Form{f}, Files: true, FilesMax: most}
	named := regexp.MustCompile(`^(f|sig)-\d+-\d+-(\d+)_(.+)$`)
	names, kinds := map[string]int{}, map[string]int{}
	small, large, total := 0, 0, int64(0)
	f.Each(func(r Result) bool {
		for _, a := range r.Items {
			name, ok := strings.CutPrefix(strings.Join(a.Values, ""), MadeFiles)
			if !ok {
				continue
			}
			m := named.FindStringSubmatch(name)
			if m == nil || m[2] != fmt.Sprint(r.ID) {
				t.Fatalf("result %d has a file %q", r.ID, name)
			}
			names[name]++
			kinds[m[1]]++
			kinds[m[3]]++
			size := s.made(name, 0).Size()
			if size < 1000 || size > most {
				t.Fatalf("%s has %d bytes", name, size)
			}
			total += size
			if size < 10_000 {
				small++
			}
			if size > most/2 {
				large++
			}
		}
		return true
	})
	if len(names) < results*3/4 || kinds["sig"] < 100 || kinds["CON.txt"] < 10 || kinds["cv.pdf"] < 100 {
		t.Errorf("%d files: %v", len(names), kinds)
	}
	if small < len(names)/2 || large < 20 || large > 100 || total/int64(len(names)) > 1<<20 {
		t.Errorf("of %d files %d are small and %d large, %d bytes in all", len(names), small, large, total)
	}

	// A rate strikes so many files, always the same.
	faults := reads(t, "file-missing=0.1,file-cut=0.2,seed=3")
	missing, cut := 0, 0
	for name := range names {
		first, second := faults.decideFile(hashOf(name), 1), faults.decideFile(hashOf(name), len(names)+cut)
		if (first == FaultMissing) != (second == FaultMissing) {
			t.Fatalf("%s is %q, then %q", name, first, second)
		}
		if first == FaultMissing {
			missing++
		}
		if second == FaultCut || first == FaultCut {
			cut++
		}
	}
	if missing < len(names)/12 || missing > len(names)/8 {
		t.Errorf("%d of %d files are missing, want a tenth", missing, len(names))
	}
}
