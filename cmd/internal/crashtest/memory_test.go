package crashtest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/servers"
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
	servers.NeedS3(t)
	// A result is 9 kB of base64, and the fast zstd leaves all of it.
	form := &bulk{results: 34000, values: 3, length: 3_000, from: time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC), step: time.Minute}
	least := int64(300_000_000)
	if large() {
		form.results, least = 225_000, 2_000_000_000
	}
	service := httptest.NewServer(form)
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
	if len(m.Parts) != 1 || m.Parts[0].Bytes < least || m.Rows != int64(form.results) {
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
	form.checkPart(t, part)
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
func (b *bulk) checkPart(t testing.TB, part []byte) {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(part))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // read only
	reader, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: pageSize}, memory.DefaultAllocator)
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
	var want []byte
	at := 0
	for batches.Next() {
		batch := batches.RecordBatch()
		ids := batch.Column(0).(*array.Int64)
		for row := range ids.Len() {
			id := ids.Value(row)
			if id != b.id(at) {
				t.Fatalf("row %d has the id %d, not %d", at, id, b.id(at))
			}
			for v := range 3 {
				if want = b.text(want[:0], id, v); batch.Column(v+1).(*array.String).Value(row) != string(want) {
					t.Fatalf("item %d of result %d is not what was served", v+1, id)
				}
			}
			at++
		}
	}
	if err := batches.Err(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if at != b.results {
		t.Errorf("%d rows, not %d", at, b.results)
	}
}

// pageSize is the most results of one answer (service-spec.md, section 8).
const pageSize = 100

// bulk is a form of results whose values are long texts that no compression
// shortens much. They are made when they are asked for, so that gigabytes need
// no memory. Results have ascending ids and dates in equal steps.
type bulk struct {
	results int
	values  int // of a result
	length  int // characters of a value
	from    time.Time
	step    time.Duration
}

const firstID = 1001

func (b *bulk) id(i int) int64        { return int64(firstID + i) }
func (b *bulk) date(i int) time.Time  { return b.from.Add(time.Duration(i) * b.step) }
func (b *bulk) item(value int) string { return strconv.Itoa(value + 1) }
func (b *bulk) rawLength() int        { return base64.StdEncoding.DecodedLen(b.length) }

// text appends the value of a result's item: the same at every reading.
func (b *bulk) text(dst []byte, id int64, value int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(id))     //nolint:gosec // ids are not negative
	binary.LittleEndian.PutUint64(seed[8:], uint64(value)) //nolint:gosec // nor this
	raw := make([]byte, b.rawLength())
	_, _ = rand.NewChaCha8(seed).Read(raw) // never fails
	return base64.StdEncoding.AppendEncode(dst, raw)
}

// ServeHTTP answers Get Results and Get Results Count as far as formetl asks
// them: bounds of dates and ids, pages by ascending id.
func (b *bulk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("fs_api_key") != testKey {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `<fs_response status="error"><error code="100">invalid key</error></fs_response>`)
		return
	}
	transaction, known := strings.CutPrefix(r.URL.Path, "/api/users/acme/forms/form1/")
	first, end, err := b.selected(q)
	if err == nil && known {
		switch transaction {
		case "results/count":
			fmt.Fprintf(w, "<fs_response status=\"success\"><count>%d</count></fs_response>\n", end-first)
			return
		case "results":
			b.answer(w, q, first, end)
			return
		}
	}
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `<fs_response status="error"><error code="2">not understood: %s %v</error></fs_response>`, transaction, err)
}

// selected gives the half-open range of results that the bounds leave.
func (b *bulk) selected(q url.Values) (first, end int, err error) {
	end = b.results
	bound := func(name string, of func(string) (int, error), take func(int)) {
		if !q.Has(name) || err != nil {
			return
		}
		var n int
		if n, err = of(q.Get(name)); err == nil {
			take(n)
		}
	}
	index := func(text string) (int, error) {
		id, err := strconv.Atoi(text)
		return id - firstID, err
	}
	raise := func(n int) { first = max(first, n) }
	lower := func(n int) { end = min(end, n) }
	bound("fs_min_id", index, raise)
	bound("fs_max_id", index, func(n int) { lower(n + 1) })
	bound("fs_min_date", b.firstAt, raise)
	bound("fs_max_date", b.after, lower) // it includes its own second
	return first, max(first, end), err
}

func (b *bulk) offset(text string) (time.Duration, error) {
	at, err := time.Parse(time.DateTime, text)
	return at.Sub(b.from), err
}

// firstAt is the first result that is dated at or after the text's time.
func (b *bulk) firstAt(text string) (int, error) {
	d, err := b.offset(text)
	return int(max(0, (d+b.step-1)/b.step)), err
}

// after is the first result that is dated after the text's second.
func (b *bulk) after(text string) (int, error) {
	d, err := b.offset(text)
	if d < 0 {
		return 0, err
	}
	return int(d/b.step) + 1, err
}

// answer writes a page.
func (b *bulk) answer(w http.ResponseWriter, q url.Values, first, end int) {
	limit := pageSize
	if n, err := strconv.Atoi(q.Get("fs_limit")); err == nil {
		limit = min(limit, n)
	}
	chosen := make([]int, 0, end-first)
	for i := first; i < end; i++ {
		chosen = append(chosen, i)
	}
	if q.Get("fs_sort_direction") != "asc" {
		slices.Reverse(chosen)
	}
	out := bufio.NewWriterSize(w, 256<<10)
	fmt.Fprint(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fs_response status=\"success\"><results>\n")
	var text []byte
	for _, i := range chosen[:min(limit, len(chosen))] {
		fmt.Fprintf(out, `<result id="%d"><metas><meta id="result_status">Complete</meta><meta id="date_finish">%s</meta></metas><items>`,
			b.id(i), b.date(i).Format(time.DateTime))
		for v := range b.values {
			text = b.text(text[:0], b.id(i), v)
			fmt.Fprintf(out, `<item id="%s" index="%d" type="text"><value>`, b.item(v), v+1)
			_, _ = out.Write(text) // told by Flush
			fmt.Fprint(out, "</value></item>")
		}
		fmt.Fprint(out, "</items></result>\n")
	}
	fmt.Fprint(out, "</results></fs_response>\n")
	_ = out.Flush() // a client that is gone has no use for it
}
