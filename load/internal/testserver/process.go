package testserver

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

// patience is how long Start waits until a server listens. It is long, because
// only failures take that long.
const patience = time.Minute

// Process is a running server.
type Process struct {
	life  io.Closer // input of its shell; closing it kills the server
	ended chan struct{}
	err   error // how it ended
}

// guarded is a shell script that runs a server and kills it when the script's
// input ends. So a test that panics or is killed leaves no server behind.
const guarded = `exec 3<&0; "$@" & p=$!; (while read -r line; do :; done <&3; kill -9 $p) >/dev/null 2>&1 & wait $p`

// Start runs a program as a server and waits until it listens at address.
// environment is added to the test's own.
func Start(ctx context.Context, address string, environment []string, program string, args ...string) (*Process, error) {
	p := &Process{ended: make(chan struct{})}
	var log strings.Builder
	cmd := exec.Command("/bin/sh", append([]string{"-c", guarded, "sh", program}, args...)...) //nolint:noctx // the server outlives the context of Start
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = append(os.Environ(), environment...)
	var err error
	if p.life, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	if err := p.wait(ctx, address); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s does not start: %w\n%s", program, err, log.String())
	}
	return p, nil
}

// Kill kills this process alone, with SIGKILL, and waits until it has ended.
// Killing twice is harmless.
func (p *Process) Kill() {
	_ = p.life.Close() // the shell kills the server when its input ends
	<-p.ended
}

// wait tries to connect to address until it succeeds, the process ends or the time is up.
func (p *Process) wait(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	var dialer net.Dialer
	for {
		if c, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			return c.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it has ended: %w", errors.Join(p.err, errors.New("see its log")))
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// Servers get ports below those that systems use for outgoing connections. So a
// server that is restarted finds its port free, and no client connects to
// itself before the server listens again.
const firstPort, ports = 20_000, 12_000

// FreeAddress returns a loopback address at which nobody listens.
func FreeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	var err error
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(ports)))
		var l net.Listener
		if l, err = lc.Listen(ctx, "tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", fmt.Errorf("no free port was found: %w", err)
}
