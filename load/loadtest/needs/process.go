package needs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// patience is how long a start waits until the server listens. It is long,
// because only failures take that long.
const patience = time.Minute

// Server is a program that runs as a server, or was stopped.
type Server struct {
	Address string // host:port

	environment []string // added to the test's own
	command     []string // the program and its arguments
	signal      string   // that ends it
	prepare     func(*exec.Cmd)

	life  io.Closer // input of its shell; closing it kills the server
	ended chan struct{}
	err   error // how it ended
}

// guarded is a shell script that runs a server and sends it a signal, its first argument,
// when the script's input ends. So a test that panics or is killed leaves no server behind.
const guarded = `exec 3<&0; s=$1; shift; "$@" & p=$!; (while read -r line; do :; done <&3; kill -$s $p) >/dev/null 2>&1 & wait $p`

// Start installs the program if needed, runs it as a server and waits until it
// listens. args are its arguments for a host and a port; environment is added to
// the test's own.
func (p GoProgram) Start(ctx context.Context, environment []string, args func(host, port string) []string) (*Server, error) {
	path, err := p.Path(ctx)
	if err != nil {
		return nil, err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{Address: net.JoinHostPort(host, port), environment: environment, command: append([]string{path}, args(host, port)...), signal: "KILL"}
	return s, s.start(ctx)
}

func (s *Server) start(ctx context.Context) error {
	var log strings.Builder
	cmd := exec.Command("/bin/sh", append([]string{"-c", guarded, "sh", s.signal}, s.command...)...) //nolint:noctx // the server outlives the context of Start
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = append(os.Environ(), s.environment...)
	if s.prepare != nil {
		s.prepare(cmd)
	}
	var err error
	if s.life, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{}) // not before, so that Stop does not wait for what never started
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
	}()
	if err := s.wait(ctx); err != nil {
		s.Stop()
		return fmt.Errorf("%s does not start: %w\n%s", s.command[0], err, log.String())
	}
	return nil
}

// Stop kills the server as a crash does and waits until it has ended. Calling it
// twice is harmless.
func (s *Server) Stop() {
	if s.ended == nil {
		return // it never started
	}
	_ = s.life.Close() // the shell kills the server when its input ends
	<-s.ended
}

// Restart kills the server, unless it was stopped before, and
// starts it at the same address over the same data.
func (s *Server) Restart(ctx context.Context) error {
	s.Stop()
	return s.start(ctx)
}

// wait tries to connect until it succeeds, the process ends or the time is up.
func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	var dialer net.Dialer
	for {
		if c, err := dialer.DialContext(ctx, "tcp", s.Address); err == nil {
			return c.Close()
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it has ended: %w", errors.Join(s.err, errors.New("see its log")))
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// Servers get ports below those that systems use for outgoing connections. So a
// server that is restarted finds its port free, and no client connects to
// itself before the server listens again.
const (
	firstPort, ports = 20_000, 12_000
	host             = "127.0.0.1"
)

// FreePort returns a loopback port at which nobody listens.
func FreePort(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	var err error
	for range 100 {
		port := strconv.Itoa(firstPort + rand.IntN(ports))
		var l net.Listener
		if l, err = lc.Listen(ctx, "tcp", net.JoinHostPort(host, port)); err == nil {
			return port, l.Close()
		}
	}
	return "", fmt.Errorf("no free port was found: %w", err)
}
