package transport_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract"
	v1 "github.com/formetl/formetl/extract/v1"
)

func failure(code string) string {
	return `<fs_response status="error"><error code="` + code + `">the service's words</error></fs_response>`
}

const countOf7 = `<fs_response status="success"><count>7</count></fs_response>`

// lockedBuffer is a log's destination.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// countOnly is any request, for tests of what all requests share.
func countOnly(ctx context.Context, c extract.Service) error {
	_, err := c.Count(ctx, "form1", extract.CountQuery{})
	return err
}

// stopsAtOnce sends a request, cancels it after some virtual time, and checks that
// it ends at that moment with the cause it was given.
func stopsAtOnce(t *testing.T, c extract.Service, after time.Duration) {
	t.Helper()
	stopped := errors.New("stopped by hand")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- countOnly(ctx, c) }()
	time.Sleep(after)
	synctest.Wait()
	start := time.Now()
	cancel(stopped)
	if err := <-done; !errors.Is(err, stopped) || time.Since(start) != 0 {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

// places tells how many requests are under way, waiters how many wait to be.
func places(c *v1.Client) int { running, _ := c.Places(); return running }

func waiters(c *v1.Client) int { _, waiting := c.Places(); return waiting }
