// Package s3server installs real S3 servers and starts them as processes. Only
// tests and their tools import it. Begin reading with Start.
//
// A server is built once, by `go install MODULE@VERSION` into a folder of the
// user's cache. That is done where every test is asked for; else tests use the
// server that was built before, or are left out.
package s3server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/load/internal/testserver"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// Credentials that the servers are started with.
const (
	AccessKey = "formetltest"
	SecretKey = "formetl-test-secret"
)

// Kind is a server program that can be installed and started.
type Kind struct {
	testserver.Program
	args func(address, dir string, tls *Certificates) []string
}

// Versitygw is the main server. It serves a folder.
func Versitygw() Kind {
	return Kind{
		Program: testserver.Program{Name: "versitygw", Module: "github.com/versity/versitygw/cmd/versitygw", Version: "v1.8.0"},
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
		Program: testserver.Program{Name: "minio", Module: "github.com/minio/minio", Version: "latest"},
		args: func(address, dir string, tls *Certificates) []string {
			args := []string{"server", "--quiet", "--address", address}
			if tls != nil {
				args = append(args, "--certs-dir", filepath.Dir(tls.Cert))
			}
			return append(args, dir)
		},
	}
}

// Server is a server that is running or was stopped.
type Server struct {
	URL    string
	Dir    string // its data
	CAFile string // the authority of its certificate, "" over plain HTTP

	address string // host:port
	program string
	args    []string
	process *testserver.Process
}

// Start installs the server if needed, starts it over dir, which must be empty,
// and waits until it listens. tls is nil for plain HTTP.
func Start(ctx context.Context, k Kind, dir string, tls *Certificates) (*Server, error) {
	program, err := k.Path(ctx)
	if err != nil {
		return nil, err
	}
	address, err := testserver.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + address, Dir: dir, address: address, program: program, args: k.args(address, dir, tls)}
	if tls != nil {
		s.URL, s.CAFile = "https://"+address, tls.CA
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	environment := []string{"MINIO_ROOT_USER=" + AccessKey, "MINIO_ROOT_PASSWORD=" + SecretKey}
	process, err := testserver.Start(ctx, s.address, environment, s.program, s.args...)
	if err != nil {
		return err
	}
	s.process = process
	return nil
}

// Address is the host and port that the server listens at.
func (s *Server) Address() string { return s.address }

// Stop kills the server with SIGKILL. Calling it twice is harmless.
func (s *Server) Stop() { s.process.Kill() }

// Restart kills the server with SIGKILL, unless it was stopped before, and
// starts it at the same address over the same data.
func (s *Server) Restart(ctx context.Context) error {
	s.Stop()
	return s.start(ctx)
}

// Variable set to off leaves out every test that needs a real S3 server.
const Variable = "FORMETL_TEST_S3"

// There tells whether tests have the main server: it was built before, or every
// program is asked for. Building it takes a minute and the module proxy.
func There() bool {
	return os.Getenv(Variable) != "off" && (needs.Programs() || Versitygw().Built())
}

// Need ends a test that needs the main server where there is none.
func Need(t testing.TB) {
	t.Helper()
	if !There() {
		needs.Missing(t, Versitygw().Name, needs.ProgramsVariable+"=1 builds it, unless "+Variable+" is off")
	}
}

// Needed says of an error that a test has no server because of it.
func Needed(err error) error { return fmt.Errorf("%w\na real S3 server is needed here", err) }
