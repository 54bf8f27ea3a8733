package report

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestPhone: on a screen of 390 pixels tables scroll, and the page does not.
func TestPhone(t *testing.T) {
	program := needs.Program(t, "chromium", "apt-get install chromium")
	served := map[string][]byte{}
	frames := "<!DOCTYPE html>"
	for name, reports := range pages() {
		served["/"+name] = pageOf(t, name, reports...)
		frames += `<iframe src="/` + name + `" width="390" height="800" onload="title = contentDocument.documentElement.scrollWidth"></iframe>`
	}
	served["/"] = []byte(frames)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(served[q.URL.Path])
	}))
	defer server.Close()
	widths := regexp.MustCompile(`src="(.*?)".* title="(\d+)"`).FindAllStringSubmatch(strings.ReplaceAll(chromium(t, program, server.URL, "--dump-dom"), "</iframe>", "\n"), -1)
	if len(widths) != len(pages()) {
		t.Errorf("the browser tells the widths of %v", widths)
	}
	for _, w := range widths {
		if w[2] != "390" && w[2] != "375" { // without a scroll bar, and beside one
			t.Errorf("%s is %s pixels wide", w[1], w[2])
		}
	}
}

// chromium runs the browser without a window, and returns its standard output.
func chromium(t *testing.T, program, url string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
	}, flags...)
	cmd := exec.CommandContext(ctx, program, append(args, url)...)
	cmd.WaitDelay = time.Second
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", flags, err, &told)
	}
	return out.String()
}
