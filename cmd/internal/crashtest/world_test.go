package crashtest

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

const testKey = "crash-test-key"

// concurrency is how many requests a definition allows at once.
const concurrency = 4

// world is a form service, a place to write to, and a pipeline from the one
// to the other.
type world struct {
	place
	t        testing.TB
	dir      string // of the definition and the state
	form     *formservice.Form
	gate     *gate // before the S3 server, nil on disk
	output   output
	patience time.Duration // how long a process may take, if longer than usual
}

// output is what a pipeline writes.
type output struct {
	file      string // its name; "" for a dataset
	format    string
	extension string // of data
}

var (
	ndjsonDataset = output{"", "ndjson", ".ndjson"}
	csvFile       = output{"form1.csv", "csv", ".csv"}
)

// kind is a kind of place.
type kind struct {
	name string
	s3   bool
}

// eachPlace runs a test on disk and, where every test is asked for, on S3.
func eachPlace(t *testing.T, test func(t *testing.T, k kind)) {
	for _, k := range []kind{{"disk", false}, {"s3", true}} {
		t.Run(k.name, func(t *testing.T) {
			if k.s3 {
				needS3(t)
			}
			test(t, k)
		})
	}
}

// needS3 ends a test that kills runs to S3 unless every test is
// asked for.
func needS3(t *testing.T) {
	t.Helper()
	needs.Long(t)
	needs.RequireS3(t)
}

// newWorld starts a service over a new form and gives an empty place.
func newWorld(t testing.TB, k kind, o output) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), form: newForm(), output: o}
	service := httptest.NewServer(&formservice.Server{Key: testKey, Forms: []*formservice.Form{w.form}})
	t.Cleanup(service.Close)
	s3 := ""
	if k.s3 {
		w.gate = newGate(t, shared.buckets.URL)
		name := strings.ReplaceAll(t.Name(), "/", "-") + filepath.Base(filepath.Dir(w.dir)) // of this run of the test
		w.place = newPrefix(t, shared.buckets.URL, name+"/")
		s3 = fmt.Sprintf("    s3: {endpoint: %q, path_style: true}\n", w.gate.URL)
	} else {
		w.place = disk{filepath.Join(w.dir, "out")}
	}
	text := fmt.Sprintf(definition, service.URL, concurrency, lastDay+1, w.address()+o.file, o.format) + s3
	if o.file == "" {
		text += "    partition: day\n"
	}
	if err := os.WriteFile(w.definition(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// definition has the columns that readers of the tests know. Further lines of the output follow it.
const definition = `version: 1
name: crash
source: {base_url: %q, account: acme, timezone: UTC, requests: {concurrency: %d, retries: 3, per_minute: 0}}
forms: [form1]
state: state
extract: {from: 2026-01-01, to: 2026-01-%02d, window: 1d}
columns:
  - {name: id, from: result_id, type: int64}
  - {name: value, from: "item:1", type: string}
  - {name: amount, from: "item:2", type: int64, on_error: reject}
  - {name: finished, from: "meta:date_finish", type: timestamp}
load:
  - path: %s
    format: %s
`

// definition is the definition's file.
func (w *world) definition() string { return filepath.Join(w.dir, "crash.yaml") }
