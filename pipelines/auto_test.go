package pipelines_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// TestAutoAsks holds that a service is asked by one request which generation it speaks, and once
// for a definition.
func TestAutoAsks(t *testing.T) {
	for _, c := range []struct {
		speaks string
		size   int // of a page
		day    int // the budget
	}{{formservice.V1, 100, 0}, {formservice.V2, 500, 10000}, {formservice.Both, 500, 10000}} {
		t.Run(c.speaks, func(t *testing.T) {
			service, source := serve(t, "form1")
			service.API = c.speaks
			source.SetAPI(definition.APIAuto)
			def := &definition.Definition{Source: source, State: t.TempDir()}
			for range 2 {
				client, err := pipelines.NewClient(t.Context(), def, pipelinestest.Options())
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				if n, day := len(service.Log()), def.Source.Requests.PerDay; client.PageSize() != c.size || n != 1 || day != c.day {
					t.Errorf("pages of %d, %d a day after %d requests, want %d, %d after 1", client.PageSize(), day, n, c.size, c.day)
				}
			}
		})
	}
}

// TestAutoOfNeither holds that a key that both generations refuse is told once.
func TestAutoOfNeither(t *testing.T) {
	service, source := serve(t, "form1")
	service.API, source.API, source.Key = formservice.Both, definition.APIAuto, transport.NewSecret("another")
	def := &definition.Definition{Source: source, State: t.TempDir()}
	_, err := pipelines.NewClient(t.Context(), def, pipelines.Options{})
	refused, ok := errors.AsType[*transport.ServiceError](err)
	if !ok || refused.Code != transport.CodeInvalidKey || !strings.HasPrefix(err.Error(), "Get Forms failed: ") {
		t.Errorf("%v", err)
	}
}
