package pipelines_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestAutoAsks holds that a service is asked which generation it speaks, by one request
// where that is the preferred one.
func TestAutoAsks(t *testing.T) {
	for _, c := range []struct {
		speaks string
		size   int // of a page
		asked  int // an answer that is not the service's is asked for three times
	}{{formservice.V1, 100, 4}, {formservice.V2, 500, 1}, {formservice.Both, 500, 1}} {
		t.Run(c.speaks, func(t *testing.T) {
			service, source := serve(t, "form1")
			service.API = c.speaks
			source.API = definition.APIAuto
			client, err := pipelines.NewClient(t.Context(), &definition.Definition{Source: source, State: t.TempDir()}, pipelines.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if n := len(service.Log()); client.PageSize() != c.size || n != c.asked {
				t.Errorf("pages of %d after %d requests, want %d after %d", client.PageSize(), n, c.size, c.asked)
			}
		})
	}
}

// TestAutoOfNeither holds that a refused key is told of with the words of both
// generations.
func TestAutoOfNeither(t *testing.T) {
	_, source := serve(t, "form1")
	source.API, source.Key = definition.APIAuto, transport.NewSecret("another")
	def := &definition.Definition{Source: source, State: t.TempDir()}
	_, err := pipelines.NewClient(t.Context(), def, pipelines.Options{})
	refused, ok := errors.AsType[*transport.ServiceError](err)
	if !ok || refused.Code != transport.CodeInvalidKey || !strings.Contains(err.Error(), "by API v2: ") || !strings.Contains(err.Error(), "by API v1: ") {
		t.Errorf("%v", err)
	}
}
