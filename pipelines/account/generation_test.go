package account_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestAutoAsksOnce holds that a service is asked once which generation it speaks, and
// that the state folder remembers the answer.
func TestAutoAsksOnce(t *testing.T) {
	for _, c := range []struct {
		speaks string
		size   int // of a page
		asked  int // an answer that is not the service's is asked for three times
	}{{formservice.V1, 100, 4}, {formservice.V2, 500, 1}, {formservice.Both, 500, 1}} {
		t.Run(c.speaks, func(t *testing.T) {
			service, source := serve(t, "form1")
			service.API = c.speaks
			source.API = definition.APIAuto
			def := &definition.Definition{Source: source, State: t.TempDir()}
			for _, asked := range []int{c.asked, 0} {
				service.Reset()
				client, err := account.NewClient(t.Context(), def, account.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if n := len(service.Log()); client.PageSize() != c.size || n != asked {
					t.Errorf("pages of %d after %d requests, want %d after %d", client.PageSize(), n, c.size, asked)
				}
				client.Close()
			}
			found, err := filepath.Glob(filepath.Join(def.State, "api-*.json"))
			if err != nil || len(found) != 1 {
				t.Fatalf("the state folder has %v, %v", found, err)
			}
			if err := os.WriteFile(found[0], []byte(`{"api":"v3"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			service.Reset()
			if client, err := account.NewClient(t.Context(), def, account.Options{}); err != nil || len(service.Log()) != c.asked {
				t.Errorf("a file that makes no sense: %v after %d requests", err, len(service.Log()))
			} else {
				client.Close()
			}
		})
	}
}

// TestAutoOfNeither holds that a refused key is told of with the words of both
// generations, and that nothing is remembered.
func TestAutoOfNeither(t *testing.T) {
	_, source := serve(t, "form1")
	source.API, source.Key = definition.APIAuto, transport.NewSecret("another")
	def := &definition.Definition{Source: source, State: t.TempDir()}
	_, err := account.NewClient(t.Context(), def, account.Options{})
	refused, ok := errors.AsType[*extract.ServiceError](err)
	if !ok || refused.Code != extract.CodeInvalidKey || !strings.Contains(err.Error(), "by API v2: ") || !strings.Contains(err.Error(), "by API v1: ") {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(def.State); len(left) != 0 {
		t.Errorf("the state folder has %v", left)
	}
}
