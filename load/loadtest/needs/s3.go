package needs

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Credentials that S3 servers are started with.
const (
	S3AccessKey = "formetltest"
	S3SecretKey = "formetl-test-secret"
)

// S3Kind is the program of an S3 server.
type S3Kind struct {
	GoProgram
	args func(host, port, dir string, tls *Certificates) []string
}

// Versitygw is the main S3 server. It serves a folder.
func Versitygw() S3Kind {
	return S3Kind{
		GoProgram: GoProgram{Name: "versitygw", Module: "github.com/versity/versitygw/cmd/versitygw", Version: "v1.8.0"},
		args: func(host, port, dir string, tls *Certificates) []string {
			args := []string{"--port", net.JoinHostPort(host, port), "--access", S3AccessKey, "--secret", S3SecretKey, "--quiet"}
			if tls != nil {
				args = append(args, "--cert", tls.Cert, "--key", tls.Key)
			}
			return append(args, "posix", dir)
		},
	}
}

// MinIO is the second S3 server. Its certificates lie in a folder of their own.
func MinIO() S3Kind {
	return S3Kind{
		GoProgram: GoProgram{Name: "minio", Module: "github.com/minio/minio", Version: "latest"},
		args: func(host, port, dir string, tls *Certificates) []string {
			args := []string{"server", "--quiet", "--address", net.JoinHostPort(host, port)}
			if tls != nil {
				args = append(args, "--certs-dir", filepath.Dir(tls.Cert))
			}
			return append(args, dir)
		},
	}
}

// S3 is an S3 server that is running or was stopped.
type S3 struct {
	*Server
	URL    string
	Dir    string // its data
	CAFile string // the authority of its certificate, "" over plain HTTP
}

// StartS3 installs an S3 server if needed, starts it over dir, which must be empty,
// and waits until it listens. tls is nil for plain HTTP.
func StartS3(ctx context.Context, k S3Kind, dir string, tls *Certificates) (*S3, error) {
	environment := []string{"MINIO_ROOT_USER=" + S3AccessKey, "MINIO_ROOT_PASSWORD=" + S3SecretKey}
	started, err := k.Start(ctx, environment, func(host, port string) []string { return k.args(host, port, dir, tls) })
	if err != nil {
		return nil, fmt.Errorf("%w\na real S3 server is needed here", err)
	}
	s := &S3{Server: started, URL: "http://" + started.Address, Dir: dir}
	if tls != nil {
		s.URL, s.CAFile = "https://"+started.Address, tls.Cert
	}
	return s, nil
}

// S3There tells whether tests have the main S3 server. Building it takes a minute and
// the module proxy.
func S3There() bool { return os.Getenv(S3Variable) != "off" && Versitygw().There() }

// S3Variable set to off tells a process of a test that it needs no S3 server.
const S3Variable = "FORMETL_TEST_S3"

// RequireS3 ends a test that needs the main S3 server where there is none.
func RequireS3(t testing.TB) {
	t.Helper()
	Versitygw().Require(t)
}
