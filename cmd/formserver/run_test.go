package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

func noEnv(string) (string, bool) { return "", false }

// output is a buffer that several goroutines may use; it tells when a line
// was written.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan string
}

func newOutput() *output { return &output{lines: make(chan string, 10)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines <- string(p)
	return o.text.Write(p)
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestRun serves, answers and stops in order.
func TestRun(t *testing.T) {
	const key = "key-of-the-environment"
	env := func(name string) (string, bool) { return key, name == keyVariable }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stdout, stderr := newOutput(), newOutput()
	code := make(chan int, 1)
	go func() {
		args := []string{
			"--addr", "127.0.0.1:0", "--results", "300", "--form", "a", "--form", "b c", "--account", "me",
			"--from", "2025-01-01", "--to", "2025-02-01T12:00:00", "--faults", "old-root", "--files", "--files-max", "1500",
		}
		code <- run(ctx, args, stdout, stderr, env)
	}()
	line := <-stdout.lines
	m := regexp.MustCompile(`^listening on (http://127\.0\.0\.1:\d+)\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("printed %q", line)
	}
	query := "?fs_api_key=" + key
	for _, form := range []string{"a", "b%20c"} {
		status, body := get(t, m[1]+"/api/users/me/forms/"+form+"/results/count"+query)
		if status != 200 || !strings.Contains(body, "<count>300</count>") || !strings.Contains(body, "<fs_result ") {
			t.Errorf("HTTP %d: %s", status, body)
		}
	}
	_, body := get(t, m[1]+"/api/users/me/forms/a/results"+query)
	link := regexp.MustCompile(m[1] + "/me/files/[^<]+").FindString(body)
	if status, file := get(t, link); status != 200 || len(file) < 1000 || len(file) > 1500 {
		t.Errorf("the file %q: HTTP %d, %d bytes", link, status, len(file))
	}
	if status, _ := get(t, m[1]+"/api/users/me/forms?fs_api_key=wrong"); status != 401 {
		t.Errorf("a wrong key: HTTP %d", status)
	}
	stop()
	if c := <-code; c != exitDone {
		t.Errorf("exit code %d", c)
	}
	if text := stderr.text.String(); !strings.Contains(text, "results/count:2") || strings.Contains(text, key) {
		t.Errorf("stderr: %s", text)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--help", exitDone, "formserver --addr 127.0.0.1:0 --results 200000"},
		{"--help", exitDone, "busy-status"},
		{"--unknown", exitUsage, "not defined: -unknown; see formserver --help"},
		{"serve", exitUsage, `unexpected argument "serve"`},
		{"--results many", exitUsage, "invalid value"},
		{"--results 10000001", exitUsage, "give 0 to 10000000"},
		{"--faults busi=1", exitUsage, `unknown fault "busi"`},
		{"--from 2025-13-01", exitUsage, `--from "2025-13-01": give a date`},
		{"--to soon", exitUsage, `--to "soon": give a date`},
		{"--from 2026-02-01", exitUsage, "is not before to"},
		{"--zone Mars/Phobos", exitUsage, `--zone "Mars/Phobos"`},
		{"--latency -1s", exitUsage, "give 0 or more"},
		{"--files-max -1", exitUsage, `invalid value "-1" for flag -files-max`},
		{"--form a --form a", exitUsage, "--form a is given twice"},
		{"--form=", exitUsage, "the name of the form is empty"},
		{"--api-key-file /does/not/exist", exitCreate, "read the API key"},
		{"--addr 127.0.0.1:99999", exitFailed, "listen on 127.0.0.1:99999"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr, noEnv)
		if code != c.code || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.want, stderr.String())
		}
		if stdout.Len() > 0 {
			t.Errorf("%s: stdout %q", c.args, stdout.String())
		}
	}
}

// TestClock checks that changes get the wall clock of the account's zone.
func TestClock(t *testing.T) {
	s := settings{api: "v1", zone: "Asia/Tokyo", from: "2025-01-01", to: "2026-01-01", results: 10}
	server, err := s.server(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	tokyo := time.FixedZone("", 9*60*60)
	before := time.Now().In(tokyo).Format(time.DateTime)
	form := server.Forms[0]
	id, err := form.Insert(formservice.Result{})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := form.Get(id)
	if v, _ := r.Meta("date_update"); v < before || v > time.Now().In(tokyo).Format(time.DateTime) {
		t.Errorf("inserted at %s, date_update %s", before, v)
	}
}
