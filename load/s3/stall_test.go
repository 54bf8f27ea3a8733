package s3

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// moment is how long these tests' destinations wait.
const moment = 50 * time.Millisecond

// blackHole takes connections and does with each what it is told, nothing at
// first sight.
func blackHole(t *testing.T, do func(net.Conn)) (url string) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			do(c)
		}
	}()
	return "http://" + l.Addr().String()
}

// impatient opens a destination that tries once and waits for a moment only.
func impatient(t *testing.T, url string, guard stallGuard) *Destination {
	t.Helper()
	d, err := newDestination(context.Background(), "s3://bucket/lake", Options{Endpoint: url}, guard)
	if err != nil {
		t.Fatal(err)
	}
	once := d.client.Options()
	once.Retryer = aws.NopRetryer{}
	d.client = awss3.New(once, func(o *awss3.Options) { o.HTTPClient = d.client.Options().HTTPClient })
	return d
}

func wantStalled(t *testing.T, err error) {
	t.Helper()
	refusal(t, err, load.ErrAway, unreached, "cannot be reached", "run the same command again later")
}

// A store that takes a request's first bytes and then nothing more.
func TestBodyIntoBlackHole(t *testing.T) {
	d := impatient(t, blackHole(t, func(c net.Conn) { _ = c.(*net.TCPConn).SetReadBuffer(4096) }), stallGuard{write: moment, read: time.Hour})
	wantStalled(t, d.Put(t.Context(), "x", make([]byte, 32<<20), load.AnyVersion))
}

// A store that never answers, though it has the whole request.
func TestNoAnswer(t *testing.T) {
	d := impatient(t, blackHole(t, func(net.Conn) {}), stallGuard{write: time.Hour, read: moment})
	_, _, err := d.Get(t.Context(), "x")
	wantStalled(t, err)
	wantStalled(t, d.Check(t.Context(), load.Prepared{Name: "x.csv", Staged: oldStaged(t)}))
	_, err = d.List(t.Context(), "a")
	wantStalled(t, err)
}

// A store that falls silent, or is cut off, in the middle of an answer.
func TestAnswerBreaksOff(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"stalls": func(net.Conn) {},
		"is cut": func(c net.Conn) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			d := impatient(t, blackHole(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 64<<10))
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nETag: \"x\"\r\n\r\nhalf")
				end(c)
			}), stallGuard{write: time.Hour, read: moment})
			_, _, err := d.Get(t.Context(), "x")
			wantStalled(t, err)
		})
	}
}

func oldStaged(t *testing.T) string {
	t.Helper()
	return staged{ID: "ABC", Run: "run1", Upload: "upload-1", Parts: []stagedPart{{ETag: `"x"`}}}.encode()
}

// A peer that is slow and takes a little each time is no black hole.
func TestSlowPeer(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	slow := &slowConn{Conn: near, steps: []int{3, 0, 5}}
	c := &guardedConn{Conn: slow, guard: stallGuard{write: time.Minute, read: time.Minute}}
	n, err := c.Write([]byte("0123456789"))
	if n != 3 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wrote %d, %v: a step without a byte must end it", n, err)
	}
	slow.steps, slow.got = []int{3, 2, 5}, strings.Builder{}
	if n, err = c.Write([]byte("0123456789")); n != 10 || err != nil || slow.got.String() != "0123456789" {
		t.Errorf("wrote %d, %v, the peer has %q", n, err, slow.got.String())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("a closed connection takes bytes")
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a closed connection gives bytes")
	}
}

// slowConn takes so many bytes in each step, and then says that time is up.
type slowConn struct {
	net.Conn
	steps []int
	got   strings.Builder
}

func (c *slowConn) Write(p []byte) (int, error) {
	if len(c.steps) == 0 {
		return c.Conn.Write(p)
	}
	n := c.steps[0]
	c.steps = c.steps[1:]
	c.got.Write(p[:n])
	if n == len(p) {
		return n, nil
	}
	return n, os.ErrDeadlineExceeded
}
