package crashtest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
)

const memoryDefinition = `version: 1
name: large
source: {base_url: %s, account: acme, timezone: UTC, requests: {concurrency: 4, timeout: 2m}}
forms: [form1]
extract: {from: 2025-01-01, to: 2026-01-01, window: 2d}
load:
  - path: %s
    format: parquet
    s3: {endpoint: "%s", path_style: true}
`

// maxResident is what a run may hold in memory, whatever it writes: 200 MB.
const maxResident = 200_000 // kB

// TestMemory streams one Parquet part to S3 that is larger than the memory
// that the run may have.
func TestMemory(t *testing.T) {
	needs.Slow(t)
	needs.RequireS3(t)
	results, least := 34_000, int64(300_000_000)
	if os.Getenv("FORMETL_TEST_LARGE") != "" {
		results, least = 225_000, 2_000_000_000
	}
	form := incompressible(results)
	service := httptest.NewServer(&formservice.Server{Key: testKey, Forms: []*formservice.Form{form}})
	t.Cleanup(service.Close)
	w := &world{t: t, dir: t.TempDir(), patience: 15 * time.Minute}
	b := newPrefix(t, shared.buckets.URL, "memory-"+filepath.Base(filepath.Dir(w.dir))+"/")
	if err := os.WriteFile(w.definition(), fmt.Appendf(nil, memoryDefinition, service.URL, b.address(), shared.buckets.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.pipeline("")
	peak, began := make(chan int64, 1), time.Now()
	go func() {
		<-p.began
		peak <- watchResident(p.Process.Pid)
	}()
	if o := w.do(p); o.code != 0 {
		t.Fatalf("ended with %d:\n%s", o.code, o.stderr)
	}
	took := time.Since(began)
	data, err := b.get(t.Context(), load.ManifestName)
	if err != nil {
		t.Fatal(err)
	}
	m, err := load.DecodeManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Parts) != 1 || m.Parts[0].Bytes < least || m.Rows != int64(results) {
		t.Fatalf("%d parts, %d rows, the first of %d bytes", len(m.Parts), m.Rows, m.Parts[0].Bytes)
	}
	most := <-peak
	t.Logf("a part of %d MB in %s: %d MB resident at most", m.Parts[0].Bytes/1e6, took.Round(100*time.Millisecond), most*1024/1e6)
	if most*1024 > maxResident*1000 {
		t.Errorf("%d kB resident, more than %d", most, maxResident)
	}
	part, err := b.get(t.Context(), m.Parts[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	checkPart(t, part, form)
}

// watchResident reads the most memory that a process has been resident with,
// in kB, until it ends. It is asked of /proc, as a child's own rusage begins
// with the memory of the process that started it: Linux counts the moment
// before exec.
func watchResident(pid int) (peak int64) {
	for {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		_, after, found := strings.Cut(string(status), "VmHWM:")
		if err != nil || !found { // it has ended
			return peak
		}
		if kb, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64); err == nil {
			peak = kb
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// checkPart reads a part and compares each value with what was served.
func checkPart(t testing.TB, part []byte, form *formservice.Form) {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(part))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // read only
	reader, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: 100}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	columns := make([]int, 0, 4)
	for _, name := range []string{"result_id", "item_1", "item_2", "item_3"} {
		columns = append(columns, r.MetaData().Schema.ColumnIndexByName(name))
	}
	batches, err := reader.GetRecordReader(t.Context(), columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer batches.Release()
	last := int64(0)
	for batches.Next() {
		batch := batches.RecordBatch()
		ids := batch.Column(0).(*array.Int64)
		for row := range ids.Len() {
			if last++; ids.Value(row) != last {
				t.Fatalf("result %d stands where %d should", ids.Value(row), last)
			}
			served, _ := form.Get(last)
			for v, item := range served.Items {
				if batch.Column(v+1).(*array.String).Value(row) != item.Values[0] {
					t.Fatalf("item %s of result %d is not what was served", item.ID, last)
				}
			}
		}
	}
	if err := batches.Err(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if last != int64(form.Len()) {
		t.Errorf("%d rows, not %d", last, form.Len())
	}
}

// incompressible is a form of so many results, one a minute, of 9 kB of base64 each, of which
// the fast zstd leaves all.
func incompressible(n int) *formservice.Form {
	noise, raw := rand.NewChaCha8([32]byte{}), make([]byte, 2250)
	from := time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)
	results := make([]formservice.Result, 0, n)
	for i := range n {
		at := from.Add(time.Duration(i) * time.Minute).Format(formservice.WallTime)
		r := formservice.Result{ID: int64(i + 1), Metas: []formservice.Meta{{ID: "result_status", Value: "Complete"}, {ID: "date_finish", Value: at}}}
		for v := range 3 {
			_, _ = noise.Read(raw) // never fails
			r.Items = append(r.Items, formservice.Answer{ID: fmt.Sprint(v + 1), Type: "text", Index: v + 1, Values: []string{base64.StdEncoding.EncodeToString(raw)}})
		}
		results = append(results, r)
	}
	return formservice.NewForm("form1", nil, results)
}
