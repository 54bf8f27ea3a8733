package s3

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// stallGuard bounds how long a connection may stand still. Without it a body
// that is sent to a peer which has vanished, or is read from one, waits for
// as long as the system's own patience: a quarter of an hour, or for ever.
type stallGuard struct {
	write time.Duration // nothing of what is sent is taken
	read  time.Duration // nothing comes, and nothing is taken
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (g stallGuard) wrap(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &guardedConn{Conn: c, guard: g}, nil
	}
}

// guardedConn is a connection that fails with a timeout when it stands still.
// The HTTP transport sets no deadlines of its own on a connection.
type guardedConn struct {
	net.Conn
	guard stallGuard
}

// Read reads what comes in time.
func (c *guardedConn) Read(p []byte) (int, error) {
	if err := c.alive(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write writes as long as the peer takes some of it in time. The transport is
// reading all the while, for the answer: what moves here is a sign of life
// there too.
func (c *guardedConn) Write(p []byte) (written int, err error) {
	for {
		if err := c.alive(); err != nil {
			return written, err
		}
		if err := c.SetWriteDeadline(time.Now().Add(c.guard.write)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
	}
}

func (c *guardedConn) alive() error {
	return c.SetReadDeadline(time.Now().Add(c.guard.read))
}
