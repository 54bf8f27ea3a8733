package crashtest

import (
	"cmp"
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
	losing
	t        testing.TB
	dir      string // of the definition and the state
	service  *formservice.Server
	url      string // of the service
	form     *formservice.Form
	gate     *gate // before the S3 server, nil on disk
	output   output
	endpoint string        // of S3, "" on disk
	state    string        // "" for a folder beside the definition
	patience time.Duration // how long a process may take, if longer than usual
	extract  string        // what the definition says of it
	env      []string
}

// output is what a pipeline writes.
type output struct {
	file      string // its name; "" for a dataset
	format    string
	extension string // of data
	columns   string // of the definition, "" to have them inferred
	partition string // of a dataset
}

// declared are the columns that readers of the tests know.
const declared = `columns:
  - {name: id, from: result_id, type: int64}
  - {name: value, from: "item:1", type: string}
  - {name: amount, from: "item:2", type: int64, on_error: reject}
  - {name: finished, from: "meta:date_finish", type: timestamp}
`

var (
	ndjsonDataset   = output{"", "ndjson", ".ndjson", declared, "day"}
	inferredDataset = output{"", "ndjson", ".ndjson", "", "day"}
	csvFile         = output{"form1.csv", "csv", ".csv", declared, ""}
	inferredFile    = output{"form1.csv", "csv", ".csv", "", ""}
	inferredWhole   = output{"", "ndjson", ".ndjson", "", "none"}
	wholeDataset    = output{"", "ndjson", ".ndjson", declared, "none"}
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
	return newWorlds(t, k, o)[0]
}

// newWorlds is newWorld for a pipeline of several outputs, which have a place
// each and everything else in common.
func newWorlds(t testing.TB, k kind, outputs ...output) []*world {
	t.Helper()
	return newWorldsOf(t, k, newForm(), fmt.Sprintf("from: 2026-01-01, to: 2026-01-%02d, window: 1d", lastDay+1), outputs...)
}

// newWorldsOf is newWorlds over a given form.
func newWorldsOf(t testing.TB, k kind, form *formservice.Form, extract string, outputs ...output) []*world {
	t.Helper()
	common := world{t: t, dir: t.TempDir(), form: form, extract: extract}
	common.service = &formservice.Server{Key: testKey, Forms: []*formservice.Form{common.form}}
	service := httptest.NewServer(common.service)
	t.Cleanup(service.Close)
	common.url = service.URL
	if k.s3 {
		common.gate = newGate(t, shared.buckets.URL)
		common.endpoint = common.gate.URL
	}
	worlds := make([]*world, 0, len(outputs))
	for i, o := range outputs {
		w := common
		w.output = o
		if k.s3 {
			name := strings.ReplaceAll(t.Name(), "/", "-") + filepath.Base(filepath.Dir(w.dir)) // of this run of the test
			w.losing = newPrefix(t, shared.buckets.URL, fmt.Sprintf("%s/%d/", name, i))
		} else {
			w.losing = disk{filepath.Join(w.dir, fmt.Sprint("out", i))}
		}
		worlds = append(worlds, &w)
	}
	define(outputs[0].columns, worlds...)
	return worlds
}

const definition = `version: 1
name: crash
source: {base_url: %q, account: acme, timezone: UTC, requests: {concurrency: %d, retries: 3, per_minute: 0}}
forms: [form1]
state: %s
extract: {%s}
%sload:
`

// define writes the pipeline's definition.
func define(columns string, worlds ...*world) {
	w := worlds[0]
	w.t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, definition, w.url, concurrency, cmp.Or(w.state, "state"), w.extract, columns)
	for _, w := range worlds {
		fmt.Fprintf(&text, "  - path: %s\n    format: %s\n", w.address()+w.output.file, w.output.format)
		if w.output.file == "" {
			fmt.Fprintln(&text, "    partition:", w.output.partition)
		}
		if w.endpoint != "" {
			fmt.Fprintf(&text, "    s3: {endpoint: %q, path_style: true}\n", w.endpoint)
		}
	}
	if err := os.WriteFile(w.definition(), []byte(text.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// definition is the definition's file.
func (w *world) definition() string { return filepath.Join(w.dir, "crash.yaml") }
