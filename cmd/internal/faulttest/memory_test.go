package faulttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/formetl/formetl/load"
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
	needServer(t)
	// A result is 9 kB of base64, and the fast zstd leaves all of it.
	form := &bulk{results: 34000, values: 3, length: 3_000, from: january(1), step: time.Minute}
	least := int64(300_000_000)
	if large() {
		form.results, least = 225_000, 2_000_000_000
	}
	dir := t.TempDir()
	b := newBucket(t)
	definition := write(t, dir, "large.yaml", fmt.Sprintf(memoryDefinition, form.serve(t), b.path(), server.URL))
	p := formetl(t, dir, nil, "run", definition)
	p.start(t)
	watched := watchResident(p.Process.Pid)
	r := p.end(t)
	peak := watched()
	r.wantOK(t)
	m, err := load.DecodeManifest(b.object(t, load.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Parts) != 1 || m.Parts[0].Bytes < least || m.Rows != int64(form.results) {
		t.Fatalf("%d parts, %d rows, the first of %d bytes", len(m.Parts), m.Rows, m.Parts[0].Bytes)
	}
	usage, ok := p.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("the system does not tell what a process used")
	}
	if peak == 0 {
		peak = usage.Maxrss
	}
	t.Logf("a part of %d MB in %s: %d MB resident at most (rusage: %d MB), %s of CPU", m.Parts[0].Bytes/1e6, r.took.Round(100*time.Millisecond),
		peak*1024/1e6, usage.Maxrss*1024/1e6, (p.ProcessState.UserTime() + p.ProcessState.SystemTime()).Round(100*time.Millisecond))
	if peak*1024 > maxResident*1000 {
		t.Errorf("%d kB resident, more than %d", peak, maxResident)
	}
	form.checkPart(t, b.file(t, m.Parts[0].Path))
}

// january is the beginning of a day of the month that the tests' results begin in.
func january(d int) time.Time {
	return time.Date(2025, time.January, d, 0, 0, 0, 0, time.UTC)
}

// watchResident reads the most memory that a process has been resident with,
// in kB, until it ends. It is asked of /proc, as a child's own rusage begins
// with the memory of the process that started it: Linux counts the moment
// before exec. 0 where there is no /proc.
func watchResident(pid int) func() int64 {
	var peak atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
			if err != nil {
				return
			}
			_, after, found := strings.Cut(string(status), "VmHWM:")
			if !found { // it has ended
				return
			}
			if kb, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64); err == nil {
				peak.Store(kb)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() int64 {
		<-ended
		return peak.Load()
	}
}

// checkPart reads a part and compares each value with what was served.
func (b *bulk) checkPart(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // read only
	type row struct {
		ID    int64  `parquet:"result_id"`
		Item1 []byte `parquet:"item_1,optional"`
		Item2 []byte `parquet:"item_2,optional"`
		Item3 []byte `parquet:"item_3,optional"`
	}
	reader := parquet.NewGenericReader[row](f)
	defer func() { _ = reader.Close() }() // read only
	rows := make([]row, pageSize)
	var want []byte
	at := 0
	for {
		n, err := reader.Read(rows)
		for _, r := range rows[:n] {
			if r.ID != b.id(at) {
				t.Fatalf("row %d has the id %d, not %d", at, r.ID, b.id(at))
			}
			for v, got := range [][]byte{r.Item1, r.Item2, r.Item3} {
				if want = b.text(want[:0], r.ID, v); !bytes.Equal(got, want) {
					t.Fatalf("item %d of result %d is not what was served", v+1, r.ID)
				}
			}
			at++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if at != b.results {
		t.Errorf("%d rows, not %d", at, b.results)
	}
}
