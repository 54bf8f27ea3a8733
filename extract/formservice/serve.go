package formservice

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outcome is an answer ready to be sent.
type outcome struct {
	body    []byte
	status  int
	code    int // of an error envelope, -1: success
	results int
	header  http.Header // those of its own
}

// ServeHTTP answers one request: it is logged before the answer is sent, so
// that whoever has the answer finds it in the log.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.prepare()
	rt, known := s.parsePath(r.URL.EscapedPath())
	req := Request{
		API: rt.api, Method: r.Method, Transaction: rt.transaction, Account: rt.account, Form: rt.form,
		Query: s.logged(rt.api, r.URL.RawQuery),
		File:  rt.file, Secret: rt.api == "" && (len(r.Header["Authorization"]) > 0 || s.logged("", r.URL.RawQuery) != r.URL.RawQuery),
	}
	s.enter(&req)
	defer s.leave()
	if s.Before != nil {
		s.Before(req)
	}
	s.mu.Lock()
	faults := s.faults
	s.mu.Unlock()
	s.disturb(&req, faults)
	if faults.span("latency") > 0 && !pause(r, faults.span("latency")) {
		return
	}
	limited := s.limit(&req, faults)
	if rt.api == "" {
		s.serveFile(w, r, req, faults, cmp.Or(limited, faults.number("busy-status"), http.StatusServiceUnavailable))
		return
	}

	c := &call{server: s, http: r, route: rt, faults: faults}
	if rt.form != "" {
		c.form = s.Form(rt.form)
	}
	xml := newXMLWriter(faults)
	g := generation(&xmlCall{c, xml})
	if rt.api == V2 {
		g = &jsonCall{c, &jsonWriter{control: c.faults.text("control")}, newClock(c.server.Zone, c.faults)}
	}
	out := outcomeOf(g, c, known, req.Fault, limited)
	if faults.on("errors-200") && out.code >= 0 && req.Fault == NoFault {
		out.status = http.StatusOK
	}
	req.Status, req.Results = out.status, out.results
	s.record(req)
	s.send(w, r, out, req.Fault, faults, g.contentType())
}

// limit decides on the request's fault. limited is the HTTP status of a busy
// answer that a bound asks for, 0: the one of the faults.
func (s *Server) limit(req *Request, faults *faults) (limited int) {
	switch {
	case faults.number("per-minute") > 0 && !s.admit(faults.number("per-minute")):
		req.Fault = FaultBusy
		return http.StatusTooManyRequests
	case s.Decide != nil:
		req.Fault = s.Decide(*req)
	case req.API != "":
		req.Fault = faults.decide(req.Number)
	case req.File != "": // the page to log in at has no faults
		req.Fault = faults.decideFile(hashOf(req.File), req.Number)
	}
	return 0
}

// admit tells whether a request is one of the allowed ones of the last 60 s.
func (s *Server) admit(allowed int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.log.recent = slices.DeleteFunc(s.log.recent, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(s.log.recent) >= allowed {
		return false
	}
	s.log.recent = append(s.log.recent, now)
	return true
}

// outcomeOf makes the right answer, or the one that the fault asks for.
func outcomeOf(g generation, c *call, known bool, fault Fault, limited int) outcome {
	faults := c.faults
	switch fault {
	case FaultBusy:
		out := g.refuse(&refusal{code: codeBusy, status: cmp.Or(limited, faults.number("busy-status")), message: "try again"})
		if after := faults.number("retry-after"); after > 0 {
			out.header = http.Header{"Retry-After": {strconv.Itoa(after)}}
		}
		return out
	case FaultHTML:
		return proxyPage(cmp.Or(faults.number("html-status"), http.StatusBadGateway))
	case FaultRedirect:
		return outcome{status: http.StatusFound, code: -1, header: http.Header{"Location": {faults.elsewhere(c.http)}}}
	case FaultReset:
		return outcome{code: -1}
	case FaultEmpty:
		return outcome{status: http.StatusOK, code: -1}
	}
	if c.form != nil {
		c.form.mu.RLock()
		defer c.form.mu.RUnlock()
	}
	no := &refusal{code: codeInvalidURL, message: "not a path of API " + c.api}
	var out outcome
	if known {
		out, no = g.answer()
	}
	if no != nil {
		out = g.refuse(no)
	}
	if faults.number("page-504") > 0 && out.results > faults.number("page-504") {
		return proxyPage(http.StatusGatewayTimeout)
	}
	if fault == FaultTruncate {
		out.body = out.body[:len(out.body)*2/3]
	}
	return out
}

// logged is a query without keys and tokens.
func (s *Server) logged(api, raw string) string {
	if api == V1 {
		return without(raw, func(p pair) bool { return p.name == keyParameter })
	}
	return without(raw, s.isToken)
}

// proxyPage is the answer of a proxy before the service.
func proxyPage(status int) outcome {
	page := "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway<br></body></html>\n"
	return outcome{body: []byte(page), status: status, code: -1, header: http.Header{"Content-Type": {"text/html"}}}
}

// pause waits; it tells whether the client is still there.
func pause(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// send writes an answer with its fault.
func (s *Server) send(w http.ResponseWriter, r *http.Request, out outcome, fault Fault, faults *faults, contentType string) {
	if fault == FaultReset {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	maps.Copy(h, out.header)
	if off := faults.span("date-header-off"); off != 0 {
		h.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
	}
	body := out.body
	if !faults.on("no-gzip") && len(body) >= leastGzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = s.compress(body)
	}
	h.Set("Vary", "Accept-Encoding")
	if fault == FaultSlow {
		w.WriteHeader(out.status)
		drip(w, r, body, cmp.Or(faults.span("slow-delay"), 10*time.Millisecond))
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(out.status)
	if fault == FaultCut {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body) // a client that went away is its own matter
}

// drip sends a body in eight pieces.
func drip(w http.ResponseWriter, r *http.Request, body []byte, delay time.Duration) {
	for piece := range slices.Chunk(body, max(1, (len(body)+7)/8)) {
		if _, err := w.Write(piece); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		if !pause(r, delay) {
			return
		}
	}
}

// leastGzip is the least number of bytes that an answer is compressed from, as web servers do.
const leastGzip = 1024

// compress returns the gzip form of a body.
func (s *Server) compress(body []byte) []byte {
	var out bytes.Buffer
	z, _ := s.gzips.Get().(*gzip.Writer)
	if z == nil {
		z, _ = gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is a valid one
	}
	z.Reset(&out)
	_, _ = z.Write(body) // a buffer takes everything
	_ = z.Close()
	s.gzips.Put(z)
	return out.Bytes()
}
