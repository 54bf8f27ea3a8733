// Package pipelinestest serves the tests of pipelines and of its rooms: a real
// service over HTTP, a definition that reads it, and what the service should give.
package pipelinestest

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/arrowout"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/load/parquetout"
	"github.com/formetl/formetl/load/xlsxout"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// Key is the API key of the services that Serve starts.
const Key = "pipelines-test-key"

// Serve serves forms over HTTP until the test ends. The source reaches them, and
// its zone has daylight saving time.
func Serve(t testing.TB, forms ...*formservice.Form) (*formservice.Server, definition.Source) {
	t.Helper()
	service := &formservice.Server{Key: Key, Forms: forms}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	zone, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	return service, definition.Source{
		BaseURL: server.URL, Account: formservice.DefaultAccount, Key: transport.NewSecret(Key), Zone: zone,
		Requests: definition.Requests{Concurrency: 4, Timeout: 20 * time.Second, Retries: 30},
	}
}

// Definition takes every result of form1 to the outputs, whose paths are relative
// to dir. They are not partitioned where they do not say so.
func Definition(dir string, source definition.Source, outputs ...definition.Output) *definition.Definition {
	for i, o := range outputs {
		outputs[i].Path = filepath.Join(dir, filepath.FromSlash(o.Path))
		if strings.HasSuffix(o.Path, "/") {
			outputs[i].Path += "/"
		}
		if o.Partition == "" {
			outputs[i].Partition = definition.PartitionNone
		}
	}
	return &definition.Definition{
		Name: "e2e", Forms: []string{"form1"}, State: filepath.Join(dir, "state"), Outputs: outputs, Source: source,
		Extract: definition.Extract{Settle: time.Minute, Changes: definition.ChangesAuto, Verify: true},
	}
}

// Options has every format, the local disk, and short pauses.
func Options() pipelines.Options {
	return pipelines.Options{
		BuiltIn: output.BuiltIn{
			Formats: []load.Format{csvout.Format(), jsonout.NDJSON(), jsonout.JSON(), parquetout.Format(), arrowout.Format(), xlsxout.Format()},
			Open: func(_ context.Context, root string, _ definition.Output) (load.Destination, error) {
				return local.New(root)
			},
			State: func(_ context.Context, path string, _ *definition.S3) (load.Destination, error) {
				return local.NewState(path)
			},
		},
		Client: pipelines.ClientOptions{BackoffMin: time.Millisecond, BackoffMax: 5 * time.Millisecond},
	}
}
