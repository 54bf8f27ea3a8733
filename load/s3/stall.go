package s3

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// stallGuard bounds how long a connection may stand still. Without it, sending
// to a peer that has vanished blocks for about a quarter of an hour, and
// reading from it blocks for ever.
type stallGuard struct {
	write time.Duration // how long the peer may accept no bytes
	read  time.Duration // how long no bytes may move in either direction
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

// guardedConn is a connection that fails with a timeout if no bytes move for too long. It may
// set deadlines, because the HTTP transport sets none on connections.
type guardedConn struct {
	net.Conn
	guard stallGuard
}

// Read fails if no bytes arrive in time.
func (c *guardedConn) Read(p []byte) (int, error) {
	if err := c.alive(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write goes on as long as the peer accepts some bytes in time. The transport
// waits in Read for the answer at the same time, so each step here also extends
// Read's deadline.
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
