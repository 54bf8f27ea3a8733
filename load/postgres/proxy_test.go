package postgres

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy forwards connections to the server and can cut them at a statement.
type proxy struct {
	port   int
	server int // its port
	// cut is called with what a client sends. It tells whether to send it on, and whether to
	// cut the connection before the answer.
	cut atomic.Pointer[func(sent []byte) (forward, cut bool)]

	mu    sync.Mutex
	conns []net.Conn
	down  bool
}

func newProxy(t *testing.T, server int) *proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{port: l.Addr().(*net.TCPAddr).Port, server: server}
	t.Cleanup(func() {
		_ = l.Close()
		p.sever()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	upstream, err := (&net.Dialer{}).Dial("tcp", net.JoinHostPort("127.0.0.1", portText(p.server)))
	p.mu.Lock()
	if err != nil || p.down {
		p.mu.Unlock()
		return
	}
	p.conns = append(p.conns, client, upstream)
	p.mu.Unlock()
	defer func() { _ = upstream.Close() }()
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := upstream.Read(buffer)
			if err != nil {
				_ = client.Close()
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		forward, cut := true, false
		if decide := p.cut.Load(); decide != nil {
			forward, cut = (*decide)(buffer[:n])
		}
		if cut {
			_ = client.Close() // the answer gets lost
		}
		if forward {
			_, err = upstream.Write(buffer[:n])
		}
		if cut && forward {
			time.Sleep(20 * time.Millisecond) // the server does what it got
		}
		if cut || err != nil {
			return
		}
	}
}

// sever cuts all connections.
func (p *proxy) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// refuse lets no further connection through, or lets them through again.
func (p *proxy) refuse(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
}

func portText(port int) string { return strconv.Itoa(port) }
