package s3server

import (
	"path/filepath"

	"github.com/formetl/formetl/load/loadtest/testserver"
)

// Certificates are absolute paths of a server's certificate for 127.0.0.1,
// which is its own authority, and of its key.
type Certificates struct{ Cert, Key string }

// NewCertificates makes a certificate in dir, which must be absolute. The names
// are those that MinIO expects.
func NewCertificates(dir string) (*Certificates, error) {
	c := &Certificates{filepath.Join(dir, "public.crt"), filepath.Join(dir, "private.key")}
	return c, testserver.Certify(c.Cert, c.Key)
}
