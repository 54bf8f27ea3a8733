package pipelines_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// refused is a network on which no connection can be made.
type refused struct{}

func (refused) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// TestPatienceOfADefinition holds that a network that is not there is given up within
// the patience that the definition sets, and within 30 seconds where it sets none.
func TestPatienceOfADefinition(t *testing.T) {
	for set, within := range map[time.Duration]time.Duration{0: 30 * time.Second, 5 * time.Second: 5 * time.Second} {
		state := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			def := &definition.Definition{State: state, Source: definition.Source{
				BaseURL: "https://fs1.example.com", Account: "acme", Key: transport.NewSecret("patience-key"), Zone: time.UTC,
				Requests: definition.Requests{Concurrency: 4, Timeout: 30 * time.Second, Retries: 100, Patience: set},
			}}
			client, err := pipelines.NewClient(t.Context(), def, pipelines.Options{Client: pipelines.ClientOptions{Transport: refused{}}})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			start := time.Now()
			if _, err := client.Count(t.Context(), "form1", extract.CountQuery{}); !transport.Temporary(err) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(start); took > within {
				t.Errorf("with a patience of %s it took %s", set, took)
			}
		})
	}
}

// TestOneCauseIsToldOnce: of several forms that the same answer ended, one error tells it.
func TestOneCauseIsToldOnce(t *testing.T) {
	refusal := &transport.ServiceError{Code: transport.CodeInvalidKey}
	failed := func(form string, err error) error {
		return fmt.Errorf("form %s: %w", form, &transport.RequestError{Transaction: "Get Results", Form: form, Err: err})
	}
	all := &pipelines.FormsError{Forms: 4, Errors: []error{
		failed("a", refusal), failed("b", &transport.NetworkError{Problem: "cut"}), failed("c", refusal), errors.New("form d: disk"),
	}}
	text := all.Error()
	if strings.Count(text, refusal.Error()) != 1 || !strings.HasPrefix(text, "4 of 4 forms failed, 1 of them for the same reason (c):\nform a: ") ||
		!strings.Contains(text, "cut") || !strings.HasSuffix(text, "form d: disk") {
		t.Error(text)
	}
}
