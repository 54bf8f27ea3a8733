package formservice

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// filePath is the path of a file below an account.
var filePath = regexp.MustCompile(`^/([^/]+)/files/([^/]+)$`)

// loginPage is what a browser gets in place of a file that is not for everybody.
const loginPage = `<!DOCTYPE html><title>Log in</title><form method="post"><input type="password" name="password"></form>`

// File is what a file holds.
type File struct {
	Size   int64
	SHA256 string // in hexadecimal digits
}

// FileOf returns what a file has held since the server began, the newest last: the fault
// file-change adds to it. The name is as it stands in a link, below files/.
func (s *Server) FileOf(name string) []File {
	s.prepare()
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	files := make([]File, s.version(name, NoFault)+1)
	for i := range files {
		content, sum := s.made(name, i), sha256.New()
		_, _ = io.Copy(sum, content) // neither fails
		files[i] = File{content.Size(), hex.EncodeToString(sum.Sum(nil))}
	}
	return files
}

// version counts how often a file was changed, this time included.
func (s *Server) version(name string, fault Fault) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault == FaultChange {
		s.versions[name]++
	}
	return s.versions[name]
}

// made returns a version of a file. The logarithms of sizes are skewed, so that half of the
// files have about the least size, of 1 to 2 kB, and few are large.
func (s *Server) made(name string, version int) *io.SectionReader {
	hash, most := hashOf(name), float64(cmp.Or(s.FilesMax, 64<<10))
	key := mix(hash, uint64(version))
	least := float64(1000 + (hash+uint64(version))%1000) // so that versions differ
	size := least * math.Pow(most/least, math.Pow(chance(mix(key, 1)), 6))
	return io.NewSectionReader(madeBytes(key), 0, int64(min(size, most)))
}

// madeBytes is a file that never ends, whose bytes follow from a hash.
type madeBytes uint64

// ReadAt makes the bytes from an offset on.
func (m madeBytes) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = byte(mix(uint64(m), uint64(off)+uint64(i)))
	}
	return len(p), nil
}

// hashOf is the hash of a file's name.
func hashOf(name string) (h uint64) {
	for _, b := range []byte(name) {
		h = mix(h, uint64(b))
	}
	return h
}

// serveFile answers a request for a file. busy is the HTTP status of a busy answer.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, req Request, faults *faults, busy int) {
	out := &fileWriter{ResponseWriter: w, server: s, request: req, left: math.MaxInt64}
	h := out.Header()
	switch {
	case req.Fault == FaultBusy:
		if after := faults.text("retry-after"); after != "" {
			h.Set("Retry-After", after)
		}
		http.Error(out, "try again", max(busy, http.StatusTooManyRequests)) // with 200 it would be a file
	case req.Secret:
		http.Error(out, "files take no key", http.StatusBadRequest)
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(out, "files can only be read", http.StatusMethodNotAllowed)
	case req.Account != s.account() || req.Fault == FaultMissing:
		http.Error(out, "there is no such file", http.StatusNotFound)
	case req.Fault == FaultRedirect:
		http.Redirect(out, r, faults.elsewhere(r), http.StatusFound)
	case req.Fault == FaultLogin:
		h.Set("Content-Type", "text/html; charset=utf-8")
		out.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(out, loginPage) // a client that went away is its own matter
	default:
		name, version := hashOf(req.File), s.version(req.File, req.Fault)
		content := s.made(req.File, version)
		h.Set("Content-Type", cmp.Or(mime.TypeByExtension(path.Ext(req.File)), "application/octet-stream"))
		if faults.first("file-", 400, name, "unsized") != NoFault {
			out.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // or a short body would get a length
			_, _ = io.Copy(out, content)
			return
		}
		h.Set("ETag", fmt.Sprintf(`"%x-%d"`, name, version))
		changed := time.Date(2025, 1, 1, version, 0, int(name%3600), 0, time.UTC)
		http.ServeContent(out, r, "", changed, content)
	}
}

// fileWriter logs a request when its answer begins, and closes the connection in mid-body
// where the fault is FaultCut.
type fileWriter struct {
	http.ResponseWriter
	server  *Server
	request Request
	left    int64 // bytes until the connection is closed
}

func (w *fileWriter) WriteHeader(status int) {
	w.request.Status = status
	w.server.record(w.request)
	if w.request.Fault == FaultCut {
		size, _ := strconv.Atoi(w.Header().Get("Content-Length")) // 0: there is none
		w.left = 1 + int64(mix(uint64(w.request.Number), 1)%uint64(max(size-1, 1)))
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *fileWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		_, _ = w.ResponseWriter.Write(p[:w.left])
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	w.left -= int64(len(p))
	return w.ResponseWriter.Write(p)
}

// MadeFiles is where the files of results lie, generated or given; see Server.Files.
const MadeFiles = "https://files.example.com/files/"

// linked returns a result whose files lie on the service's own host, if the server has files.
func (c *call) linked(r Result) Result {
	if !c.server.Files {
		return r
	}
	scheme := "https"
	if c.http.TLS == nil {
		scheme = "http"
	}
	r = r.Clone()
	for _, a := range r.Items {
		for i, v := range a.Values {
			if name, ok := strings.CutPrefix(v, MadeFiles); ok {
				a.Values[i] = scheme + "://" + c.http.Host + "/" + url.PathEscape(c.server.account()) + "/files/" + name
			}
		}
	}
	return r
}
