package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/formetl/formetl/extract/formservice"
)

// end is the end of all results that the service has.
const end = "2026-01-01"

// prepared answers requests for results. An answer is made once and kept.
type prepared struct {
	service http.Handler
	latency time.Duration

	mu      sync.Mutex
	answers map[string]*httptest.ResponseRecorder
	asked   []string // addresses of the answers, in the order of the first requests
}

// preparedPath lists the addresses of all answers that are kept.
const preparedPath = "/prepared"

// ServeHTTP answers a request.
func (p *prepared) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == preparedPath {
		p.mu.Lock()
		defer p.mu.Unlock()
		_, _ = io.WriteString(w, strings.Join(p.asked, "\n")) // the client notices
		return
	}
	began := time.Now()
	answer := p.answer(r)
	select {
	case <-time.After(p.latency - time.Since(began)):
	case <-r.Context().Done():
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // as above
}

// answer returns the answer to a request. Results before the end of all results are
// all results, so a later bound does not make an answer another one.
func (p *prepared) answer(r *http.Request) *httptest.ResponseRecorder {
	q := r.URL.Query()
	if q.Get("fs_max_date") > end {
		q.Del("fs_max_date")
	}
	name := r.Header.Get("Accept-Encoding") + " " + r.URL.Path + "?" + q.Encode()
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.answers[name]; a != nil {
		return a
	}
	p.mu.Unlock()
	a := httptest.NewRecorder()
	p.service.ServeHTTP(a, r)
	p.mu.Lock()
	p.answers[name] = a
	if strings.HasSuffix(r.URL.Path, "/"+formservice.TransactionResults) {
		p.asked = append(p.asked, r.URL.RequestURI())
	}
	return a
}

// serve is the service's process. It writes its address to standard output.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	results := flags.Int("results", 0, "")
	items := flags.Int("items", 0, "")
	latency := flags.Duration("latency", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	form := formservice.Generate(formservice.GenerateOptions{
		Results: *results, Items: *items, Even: true, NoUnfinished: true, NoUndated: true, NoLate: true, NoHostile: true,
	})
	p := &prepared{
		service: &formservice.Server{Forms: []*formservice.Form{form}, Faults: "no-gzip"},
		latency: *latency, answers: map[string]*httptest.ResponseRecorder{},
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // Serve returns why it ended
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// service is a running test service.
type service struct {
	url     string
	process *exec.Cmd
}

// startService starts the service's process and waits until it listens.
func (s *settings) startService(ctx context.Context) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, self, "serve", fmt.Sprint("-results=", s.results), fmt.Sprint("-items=", s.items), fmt.Sprint("-latency=", s.latency))
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the service: %w", err), command.Wait())
	}
	return &service{url: strings.TrimSpace(line), process: command}, nil
}

// stop ends the service's process.
func (s *service) stop() {
	_ = s.process.Process.Signal(syscall.SIGTERM) // Wait returns all the same
	_ = s.process.Wait()
}

// pages returns the addresses of the pages that formetl has asked for.
func (s *service) pages(ctx context.Context) ([]string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+preparedPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var pages []string
	for address := range strings.Lines(string(body)) {
		u, err := url.Parse(s.url + strings.TrimSpace(address))
		if err != nil {
			return nil, err
		}
		if !u.Query().Has("fs_sort") { // else it asks what changed
			pages = append(pages, u.String())
		}
	}
	return pages, nil
}
