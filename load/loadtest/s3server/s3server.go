// Package s3server gets real S3 servers and starts them as processes. It is
// imported by tests only.
//
// A server is built once, by `go install MODULE@VERSION` into a folder of the
// user's cache, so that one `go test` is enough on a fresh machine that has
// reached the module proxy before.
package s3server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Credentials that the servers are started with.
const (
	AccessKey = "formetltest"
	SecretKey = "formetl-test-secret"
)

// patience is how long a server may take until it listens. It is no
// measurement: a slow machine only takes longer to fail.
const patience = time.Minute

// Kind is a server that can be got and started.
type Kind struct {
	Name    string
	Module  string // of its main package
	Version string
	args    func(address, dir string, tls *Certificates) []string
}

// Versitygw is the main server: a gateway onto a folder.
func Versitygw() Kind {
	return Kind{
		Name: "versitygw", Module: "github.com/versity/versitygw/cmd/versitygw", Version: "v1.8.0",
		args: func(address, dir string, tls *Certificates) []string {
			args := []string{"--port", address, "--access", AccessKey, "--secret", SecretKey, "--quiet"}
			if tls != nil {
				args = append(args, "--cert", tls.Cert, "--key", tls.Key)
			}
			return append(args, "posix", dir)
		},
	}
}

// MinIO is the second server. Its certificates lie in a folder of their own.
func MinIO() Kind {
	return Kind{
		Name: "minio", Module: "github.com/minio/minio", Version: "latest",
		args: func(address, dir string, tls *Certificates) []string {
			args := []string{"server", "--quiet", "--address", address}
			if tls != nil {
				args = append(args, "--certs-dir", filepath.Dir(tls.Cert))
			}
			return append(args, dir)
		},
	}
}

// Server is a server that runs.
type Server struct {
	URL    string
	Dir    string    // its data
	CAFile string    // the authority of its certificate, "" over plain HTTP
	life   io.Closer // of its shell's input
	ended  chan struct{}
	err    error // with which it ended
}

// guarded is a shell that runs a server and kills it when its own input ends:
// a test that panics, or is killed, leaves no server behind.
const guarded = `exec 3<&0; "$@" & p=$!; (cat <&3; kill -9 $p) >/dev/null 2>&1 & wait $p`

// Start gets the server, starts it over dir, which must be empty, and waits
// until it listens. tls is nil for plain HTTP.
func Start(ctx context.Context, k Kind, dir string, tls *Certificates) (*Server, error) {
	program, err := k.program(ctx)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + address, Dir: dir, ended: make(chan struct{})}
	if tls != nil {
		s.URL, s.CAFile = "https://"+address, tls.CA
	}
	var log strings.Builder
	cmd := exec.Command("sh", append([]string{"-c", guarded, "sh", program}, k.args(address, dir, tls)...)...) //nolint:noctx // it outlives the context of its start
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+AccessKey, "MINIO_ROOT_PASSWORD="+SecretKey)
	if s.life, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
	}()
	if err := s.wait(ctx, address); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%s does not start: %w\n%s", k.Name, err, log.String())
	}
	return s, nil
}

// Stop kills the server, and only it.
func (s *Server) Stop() {
	_ = s.life.Close() // what it is for
	<-s.ended
}

// wait asks for a connection until there is one.
func (s *Server) wait(ctx context.Context, address string) error {
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
		case <-s.ended:
			return fmt.Errorf("it has ended: %w", errors.Join(s.err, errors.New("see its log")))
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// freeAddress gives a loopback address that nobody listens at.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// program gives the server's program, built where it is not there yet. It is
// renamed into its place, so that two tests may build side by side.
func (k Kind) program(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "formetl-test")
	final := filepath.Join(home, k.Name+"-"+url.PathEscape(k.Version))
	name := path.Base(k.Module)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if _, err := os.Stat(filepath.Join(final, name)); err == nil {
		return filepath.Join(final, name), nil
	}
	if err := os.MkdirAll(home, 0o750); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(home, "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	fmt.Fprintf(os.Stderr, "building %s@%s into %s, once\n", k.Module, k.Version, final)
	install := exec.CommandContext(ctx, "go", "install", k.Module+"@"+k.Version)
	install.Dir = temp // no module: the project's own does not matter
	install.Env = append(os.Environ(), "GOBIN="+temp, "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot get %s@%s: %w\n%s", k.Module, k.Version, err, out)
	}
	if err := os.Rename(temp, final); err != nil {
		if _, there := os.Stat(filepath.Join(final, name)); there != nil {
			return "", err
		}
	}
	return filepath.Join(final, name), nil
}
