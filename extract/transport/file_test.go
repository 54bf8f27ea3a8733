package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// fileServer serves files by answer, and notes the requests that came.
type fileServer struct {
	*httptest.Server
	mu   sync.Mutex
	came []string
}

func serveFiles(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int)) *fileServer {
	t.Helper()
	s := &fileServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.came = append(s.came, fmt.Sprint(r.URL, r.Header))
		n := len(s.came)
		s.mu.Unlock()
		answer(w, r, n)
	}))
	t.Cleanup(s.Close)
	return s
}

// fetch asks the server for a file, with three attempts.
func (s *fileServer) fetch(t *testing.T, path string, change func(*FileCall)) (File, string, error) {
	t.Helper()
	sender, err := NewSender(Config{
		BaseURL: s.URL, Account: "acme", Key: NewSecret(Canary), Retries: 2, BackoffMin: 1, BackoffMax: 1, Timeout: 200 * time.Millisecond, UserAgent: "me",
	}, Dialect{Root: "/api", KeyParameter: "key"})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	link, is := FileLink(s.URL + path)
	if !is {
		t.Fatalf("%s is no link", path)
	}
	var got bytes.Buffer
	call := FileCall{Form: "form1", Link: link, MaxBytes: 100, Begin: func() (io.Writer, error) { got.Reset(); return &got, nil }}
	if change != nil {
		change(&call)
	}
	file, err := sender.File(t.Context(), call)
	s.mu.Lock()
	defer s.mu.Unlock()
	HidesKey(t, "a request for a file", strings.Join(s.came, "\n"))
	return file, got.String(), err
}

// cut sends the first bytes of a file and closes the connection.
func cut(w http.ResponseWriter, etag, sent string, size int) {
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Length", fmt.Sprint(size))
	_, _ = io.WriteString(w, sent)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// TestFile: every file comes whole, or its status says why not.
func TestFile(t *testing.T) {
	elsewhere := serveFiles(t, func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = io.WriteString(w, "theirs") })
	const content = "0123456789"
	for _, c := range []struct {
		name, path string
		answer     func(w http.ResponseWriter, r *http.Request, n int)
		hosts      []string
		status     FileStatus
		requests   int
	}{
		{name: "whole", answer: func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = io.WriteString(w, content) }, status: FileStored, requests: 1},
		{name: "cut and continued", answer: func(w http.ResponseWriter, r *http.Request, n int) {
			if n == 1 {
				cut(w, `"a"`, content[:4], len(content))
			}
			if r.Header.Get("Range") != "bytes=4-" || r.Header.Get("If-Range") != `"a"` {
				t.Errorf("the rest is asked for by %v", r.Header)
			}
			w.Header().Set("ETag", `"a"`)
			w.Header().Set("Content-Range", "bytes 4-9/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, content[4:])
		}, status: FileStored, requests: 2},
		{name: "cut and another file since", answer: func(w http.ResponseWriter, _ *http.Request, n int) {
			if n == 1 {
				cut(w, `"a"`, "oldest", 7)
			}
			w.Header().Set("ETag", `"b"`)
			_, _ = io.WriteString(w, content)
		}, status: FileStored, requests: 2},
		{name: "always another and cut", answer: func(w http.ResponseWriter, _ *http.Request, n int) {
			cut(w, fmt.Sprintf(`"%d"`, n), "half", 8)
		}, status: FileChanged, requests: 3},
		{name: "always cut", answer: func(w http.ResponseWriter, _ *http.Request, _ int) { cut(w, "", "half", 8) }, status: FileFailed, requests: 3},
		{name: "the rest of another file", answer: func(w http.ResponseWriter, _ *http.Request, n int) {
			switch n {
			case 1:
				cut(w, `"a"`, content[:4], len(content))
			case 2:
				w.Header().Set("ETag", `"b"`)
				w.Header().Set("Content-Range", "bytes 4-9/10")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = io.WriteString(w, "XXXXXX")
			}
			_, _ = io.WriteString(w, content)
		}, status: FileStored, requests: 3},
		{name: "missing", answer: func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusNotFound) }, status: FileMissing, requests: 1},
		{name: "forbidden", answer: func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusForbidden) }, status: FileForbidden, requests: 1},
		{name: "a login page", answer: func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<form>")
		}, status: FileForbidden, requests: 1},
		{name: "a file that is a page", path: "/acme/files/f-1_x.HTML", answer: func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, content)
		}, status: FileStored, requests: 1},
		{name: "a page to log in at", path: "/acme/files/f-1_x.html", answer: func(w http.ResponseWriter, r *http.Request, n int) {
			if w.Header().Set("Content-Type", "text/html"); n == 1 {
				http.Redirect(w, r, "/login", http.StatusFound)
			}
		}, status: FileForbidden, requests: 2},
		{name: "moved on the host", answer: func(w http.ResponseWriter, r *http.Request, n int) {
			if n == 1 {
				http.Redirect(w, r, "/store/f-1", http.StatusMovedPermanently)
			}
			_, _ = io.WriteString(w, content)
		}, status: FileStored, requests: 2},
		{name: "redirected for ever", answer: func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, "/store/f-1", http.StatusFound)
		}, status: FileRefused, requests: maxRedirects},
		{name: "redirected elsewhere", answer: func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, elsewhere.URL+"/files/f-1", http.StatusFound)
		}, status: FileRefused, requests: 1},
		{name: "redirected into this machine", answer: func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, elsewhere.URL+"/files/f-1", http.StatusFound)
		}, hosts: []string{strings.TrimPrefix(elsewhere.URL, "http://")}, status: FileRefused, requests: 1},
		{name: "too large by its length", answer: func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Length", "101")
		}, status: FileTooLarge, requests: 1},
		{name: "too large as it comes", answer: func(w http.ResponseWriter, _ *http.Request, _ int) {
			_, _ = io.WriteString(w, strings.Repeat("x", 60))
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, strings.Repeat("x", 60))
		}, status: FileTooLarge, requests: 1},
		{name: "busy at first", answer: func(w http.ResponseWriter, _ *http.Request, n int) {
			if n < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = io.WriteString(w, content)
		}, status: FileStored, requests: 3},
		{name: "broken", answer: func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusInternalServerError) }, status: FileFailed, requests: 3},
		{name: "an odd answer", answer: func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusPaymentRequired) }, status: FileFailed, requests: 1},
		{name: "silent", answer: func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }, status: FileFailed, requests: 3},
		{name: "of no known length", answer: func(w http.ResponseWriter, _ *http.Request, _ int) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, "HTTP/1.0 200 OK\r\n\r\n"+content)
				err = connection.Close()
			}
			if err != nil {
				t.Error(err)
			}
		}, status: FileFailed, requests: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serveFiles(t, c.answer)
			path := c.path
			if path == "" {
				path = "/acme/files/f-1-2-3_x.bin"
			}
			file, got, err := s.fetch(t, path, func(call *FileCall) { call.Hosts = c.hosts })
			if err != nil || file.Status != c.status || len(s.came) != c.requests {
				t.Fatalf("%+v after %d requests, %v", file, len(s.came), err)
			}
			if file.Status == FileStored && got != content {
				t.Errorf("it holds %q", got)
			}
		})
	}
	t.Cleanup(func() {
		if len(elsewhere.came) > 0 {
			t.Errorf("another host was asked: %v", elsewhere.came)
		}
	})
}

// TestFileThatCannotBeWritten: a failure of the place that files go to is no status of the file.
func TestFileThatCannotBeWritten(t *testing.T) {
	full := errors.New("the disk is full")
	s := serveFiles(t, func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = io.WriteString(w, "x") })
	_, _, err := s.fetch(t, "/acme/files/f-1", func(call *FileCall) { call.Begin = func() (io.Writer, error) { return nil, full } })
	if !errors.Is(err, full) || len(s.came) != 1 {
		t.Errorf("%v after %d requests", err, len(s.came))
	}
}

// slow takes long to write, as a bucket far away does.
type slow struct{ bytes.Buffer }

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(300 * time.Millisecond) // more than Timeout
	return s.Buffer.Write(p)
}

// TestFileForASlowWriter: the time that a file's place takes is not the service's.
func TestFileForASlowWriter(t *testing.T) {
	t.Parallel()
	s := serveFiles(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(50 * time.Millisecond)
		_, _ = io.WriteString(w, "last")
	})
	var to slow
	file, _, err := s.fetch(t, "/files/f-1", func(c *FileCall) { c.Begin = func() (io.Writer, error) { to.Reset(); return &to, nil } })
	if err != nil || file.Status != FileStored || to.String() != "firstlast" || len(s.came) != 1 {
		t.Errorf("%+v, %v: %q by %d requests", file, err, &to, len(s.came))
	}
}

// away is a host that nobody can connect to.
type away struct{}

func (away) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

// TestAnotherHostIsAway: the service is not taken to be away with it.
func TestAnotherHostIsAway(t *testing.T) {
	sender, err := NewSender(Config{BaseURL: "http://127.0.0.1:1", Account: "acme", Key: NewSecret(Canary), Retries: 2, BackoffMin: 1, BackoffMax: 1}, Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	sender.elsewhere = away{}
	link, _ := FileLink("https://files.example.com/files/f-1")
	for range opensAfter {
		file, err := sender.File(t.Context(), FileCall{Form: "form1", Link: link, Hosts: []string{"files.example.com"}})
		if err != nil || file.Status != FileFailed {
			t.Fatalf("%+v, %v", file, err)
		}
	}
	if open, _, _ := sender.circuit.state(); open {
		t.Error("the service is taken to be away")
	}
}

func TestFileLink(t *testing.T) {
	for value, want := range map[string]bool{
		"https://fs1.example.com/acme/files/f-1-2-3_cv.pdf":    true,
		"http://fs1.example.com/files/sig-1-2-3_signature.png": true,
		"https://fs1.example.com/acme/files/f-1_%2e%2e%2fx":    true,
		"https://fs1.example.com/acme/files/f-1/x":             false,
		"https://fs1.example.com/acme/files/..":                false,
		"https://fs1.example.com/acme/forms/f-1":               false,
		"https://me:secret@fs1.example.com/files/f-1":          true, // and refused
		"HTTPS://fs1.example.com/files/f-1":                    true,
		"//fs1.example.com/files/f-1":                          true,
		"/acme/files/f-1-2-3_cv.pdf":                           true,
		"acme/files/f-1-2-3_cv.pdf":                            false,
		"mailto:/files/f-1":                                    false,
		"https:///files/f-1":                                   false,
		"ftp://fs1.example.com/files/f-1":                      false,
		"see https://fs1.example.com/files/f-1":                false,
		"https://[::1/files/f-1":                               false,
	} {
		if _, is := FileLink(value); is != want {
			t.Errorf("%s: %t", value, is)
		}
	}
}

// TestAllowedFiles: files come from the service's own host and from those that are listed.
func TestAllowedFiles(t *testing.T) {
	for _, c := range []struct {
		base, link string
		want       bool
	}{
		{"https://fs1.example.com", "https://FS1.example.com:443/files/f-1", true},
		{"https://fs1.example.com", "http://fs1.example.com/files/f-1", true}, // asked by https
		{"https://fs1.example.com", "https://fs1.example.com:8443/files/f-1", false},
		{"https://fs1.example.com", "https://files.example.com/files/f-1", true},
		{"https://fs1.example.com", "https://files.example.com:8443/files/f-1", false},
		{"https://fs1.example.com", "http://files.example.com/files/f-1", false}, // no step down
		{"https://fs1.example.com", "https://other.example.com/files/f-1", true}, // listed with the port
		{"https://fs1.example.com", "https://other.example.com:8443/files/f-1", false},
		{"http://127.0.0.1:80", "http://files.example.com/files/f-1", true},
		{"https://fs1.example.com", "https://evil.example.com/files/f-1", false},
		{"https://fs1.example.com", "//evil.example.com/files/f-1", false},
		{"https://fs1.example.com", "https://me@fs1.example.com/files/f-1", false},
		{"https://fs1.example.com", "/acme/files/f-1", true},
	} {
		base, _ := url.Parse(c.base)
		link, _ := FileLink(c.link)
		if got := (&Sender{base: base}).allowed(base.ResolveReference(link), []string{"files.example.com", "other.example.com:443"}); got != c.want {
			t.Errorf("%s, %s: %t", c.base, c.link, got)
		}
	}
}

func TestIsPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "::1": false, "fe80::1": false, "fd00::1": false, "::ffff:10.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b:1::7f00:1": false, "::127.0.0.1": false, "fec0::1": false, "2001::1": false, "::": false,
	} {
		if isPublic(netip.MustParseAddr(address)) != want {
			t.Errorf("%s: %t", address, !want)
		}
	}
}
