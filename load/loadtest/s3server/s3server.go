// Package s3server installs real S3 servers and starts them as processes. Only
// tests and their tools import it. Begin reading with Start.
package s3server

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/load/loadtest/testserver"
)

// Credentials that the servers are started with.
const (
	AccessKey = "formetltest"
	SecretKey = "formetl-test-secret"
)

// Kind is a server program that can be installed and started.
type Kind struct {
	testserver.Program
	args func(host, port, dir string, tls *Certificates) []string
}

// Versitygw is the main server. It serves a folder.
func Versitygw() Kind {
	return Kind{
		Program: testserver.Program{Name: "versitygw", Module: "github.com/versity/versitygw/cmd/versitygw", Version: "v1.8.0"},
		args: func(host, port, dir string, tls *Certificates) []string {
			args := []string{"--port", net.JoinHostPort(host, port), "--access", AccessKey, "--secret", SecretKey, "--quiet"}
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
		args: func(host, port, dir string, tls *Certificates) []string {
			args := []string{"server", "--quiet", "--address", net.JoinHostPort(host, port)}
			if tls != nil {
				args = append(args, "--certs-dir", filepath.Dir(tls.Cert))
			}
			return append(args, dir)
		},
	}
}

// Server is a server that is running or was stopped.
type Server struct {
	*testserver.Server
	URL    string
	Dir    string // its data
	CAFile string // the authority of its certificate, "" over plain HTTP
}

// Start installs the server if needed, starts it over dir, which must be empty,
// and waits until it listens. tls is nil for plain HTTP.
func Start(ctx context.Context, k Kind, dir string, tls *Certificates) (*Server, error) {
	environment := []string{"MINIO_ROOT_USER=" + AccessKey, "MINIO_ROOT_PASSWORD=" + SecretKey}
	started, err := k.Start(ctx, environment, func(host, port string) []string { return k.args(host, port, dir, tls) })
	if err != nil {
		return nil, fmt.Errorf("%w\na real S3 server is needed here", err)
	}
	s := &Server{Server: started, URL: "http://" + started.Address, Dir: dir}
	if tls != nil {
		s.URL, s.CAFile = "https://"+started.Address, tls.Cert
	}
	return s, nil
}

// There tells whether tests have the main server. Building it takes a minute and
// the module proxy.
func There() bool { return os.Getenv(Variable) != "off" && Versitygw().There() }

// Variable set to off tells a process of a test that it needs no server.
const Variable = "FORMETL_TEST_S3"

// Need ends a test that needs the main server where there is none.
func Need(t testing.TB) {
	t.Helper()
	Versitygw().Need(t)
}
