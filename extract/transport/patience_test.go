package transport_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/transport"
)

// refuses is a server to which no connection can be made.
func refuses(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// TestFirstConnection: requests to a server that nobody has reached end within half a
// minute, or within the patience that was set, whether one is under way or several.
func TestFirstConnection(t *testing.T) {
	for _, c := range []struct{ set, within time.Duration }{
		{0, transport.DefaultFirstPatience}, {5 * time.Second, 5 * time.Second}, {10 * time.Minute, 10 * time.Minute},
	} {
		for _, requests := range []int{1, 8} {
			t.Run(fmt.Sprint(c.set, requests), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := extracttest.Answering(t, transport.Canary, refuses, func(cfg *transport.Config) {
						cfg.Patience, cfg.Retries, cfg.Concurrency = c.set, 1000, requests
					})
					start := time.Now()
					var group sync.WaitGroup
					for range requests {
						group.Go(func() {
							if err := countOnly(t.Context(), client); !errors.As(err, new(*transport.NetworkError)) || !transport.Temporary(err) {
								t.Error(err)
							}
						})
					}
					group.Wait()
					if took := time.Since(start); took > c.within || took < c.within-time.Second {
						t.Errorf("it took %s, want at most %s", took, c.within)
					}
				})
			})
		}
	}
}

// TestLaterConnection: a server that was reached once, and only then refuses, is
// waited for as long as in any other outage.
func TestLaterConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := false
		client := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
			if away {
				return refuses(r)
			}
			return extracttest.Respond(200, countOf7), nil
		}, func(cfg *transport.Config) { cfg.Retries = 1000 })
		if err := countOnly(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		away = true
		start := time.Now()
		err := countOnly(t.Context(), client)
		if took := time.Since(start); err == nil || took <= transport.DefaultFirstPatience || took > transport.DefaultPatience {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestOutageThatOneRequestMeets: a service that is away for less than the patience is
// waited for, also if one request alone meets it, and whatever chance says of pauses.
func TestOutageThatOneRequestMeets(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			client := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
				if gone := time.Since(start); gone > time.Second && gone < 115*time.Second {
					return refuses(r)
				}
				return extracttest.Respond(200, countOf7), nil
			}, nil)
			client.Reads(2)
			for range 3 {
				if err := countOnly(t.Context(), client); err != nil {
					t.Errorf("after %s: %v", time.Since(start), err)
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// TestWrongServerThatStarts: a server of something else that is not yet there at the first
// attempt is told from the service all the same.
func TestWrongServerThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		client := extracttest.Answering(t, transport.Canary, func(r *http.Request) (*http.Response, error) {
			if attempts++; attempts == 1 {
				return refuses(r)
			}
			return extracttest.Respond(200, "<html></html>"), nil
		}, nil)
		if err := countOnly(t.Context(), client); !isNotService(err) || attempts != 4 {
			t.Errorf("after %d attempts: %v", attempts, err)
		}
	})
}

// TestRetriesTellAnErrorOnce: of attempts that fail for one reason, the log has it once.
func TestRetriesTellAnErrorOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := &lockedBuffer{}
		client := extracttest.Answering(t, transport.Canary, refuses, func(cfg *transport.Config) {
			cfg.Logger = slog.New(slog.NewJSONHandler(logged, nil))
		})
		if err := countOnly(t.Context(), client); err == nil {
			t.Fatal("no error")
		}
		if log := logged.String(); strings.Count(log, "refused") != 1 || strings.Count(log, "; trying again") < 3 {
			t.Errorf("the log has\n%s", log)
		}
	})
}
