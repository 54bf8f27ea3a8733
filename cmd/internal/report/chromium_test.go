package report

import (
	"bytes"
	"context"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestHostilePageInChromium: texts that look like scripts do not run, and ask for nothing. A
// page that holds them as they are does, so that the test would see it.
func TestHostilePageInChromium(t *testing.T) {
	program := needs.Program(t, "chromium", "apt-get install chromium")
	for _, c := range []struct {
		page []byte
		want string
	}{{pageOf(t, "hostile", hostileRun()), "/"}, {[]byte("<!DOCTYPE html><p>" + hostile), "/ /stolen"}} {
		asked := &requests{page: c.page}
		server := httptest.NewServer(asked)
		dom := chromium(t, program, server.URL, "--dump-dom")
		server.Close()
		if paths := asked.list(); !strings.HasPrefix(strings.Join(paths, " ")+" ", c.want+" ") || c.want == "/" && len(paths) > 1 {
			t.Errorf("the browser asked for %v, not %s", paths, c.want)
		}
		if safe := !strings.Contains(dom, "<img"); safe != (c.want == "/") {
			t.Errorf("the browser makes another page of it:\n%.2000s", dom)
		}
	}
}

// TestPhone: on a screen of 390 pixels tables and charts scroll, and the page does not.
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

// TestLook opens a page in each way that people look at it. Light, dark and print are what
// they are called, and nothing but the page is asked for.
func TestLook(t *testing.T) {
	program := needs.Program(t, "chromium", "apt-get install chromium")
	asked := &requests{page: pageOf(t, "year", year(200))}
	server := httptest.NewServer(asked)
	defer server.Close()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }

	const window = "--window-size=1180,2400"
	chromium(t, program, server.URL, window, "--screenshot="+file("light.png"), "--blink-settings=preferredColorScheme=1")
	chromium(t, program, server.URL, window, "--screenshot="+file("dark.png"), "--blink-settings=preferredColorScheme=0")
	chromium(t, program, server.URL, "--print-to-pdf="+file("print.pdf"), "--no-pdf-header-footer", "--blink-settings=preferredColorScheme=0")

	if light, dark := ground(t, file("light.png")), ground(t, file("dark.png")); light < 0xf000 || dark > 0x2000 {
		t.Errorf("the ground is %#x in light and %#x in dark", light, dark)
	}
	if pdf, err := os.ReadFile(file("print.pdf")); err != nil || !bytes.HasPrefix(pdf, []byte("%PDF-")) || len(pdf) < 10_000 {
		t.Errorf("printed: %d bytes, %v", len(pdf), err)
	}
	if paths := asked.list(); strings.Join(paths, " ") != "/ / /" {
		t.Errorf("the browser asked for %v", paths)
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

// ground is how light the page's ground is, of 0xffff.
func ground(t *testing.T, file string) uint32 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r, g, b, _ := picture.At(3, 3).RGBA()
	return (r + g + b) / 3
}

// requests serves a page at every path, and notes what it was asked for.
type requests struct {
	page []byte

	mu    sync.Mutex
	paths []string
}

func (r *requests) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths = append(r.paths, q.URL.String())
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write(r.page)
}

func (r *requests) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paths
}
