package upkeep_test

import (
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// world is a real service over HTTP and a folder for what runs write.
type world struct {
	t       testing.TB
	service *formservice.Server
	source  definition.Source
	dir     string
}

func newWorld(t testing.TB, forms ...*formservice.Form) *world {
	t.Helper()
	service, source := pipelinestest.Serve(t, forms...)
	return &world{t: t, service: service, source: source, dir: t.TempDir()}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) definition(outputs ...definition.Output) *definition.Definition {
	return pipelinestest.Definition(w.dir, w.source, outputs...)
}

func options() pipelines.Options { return pipelinestest.Options() }
