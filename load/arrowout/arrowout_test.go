package arrowout_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/arrowout"
	"github.com/formetl/formetl/load/loadtest"
)

func TestConformance(t *testing.T) { loadtest.Encoder(t, arrowout.Format(), read, loadtest.Limits{}) }

func read(file []byte, schema *arrow.Schema) ([][]string, error) {
	r, err := ipc.NewFileReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	for i, f := range schema.Fields() {
		if !r.Schema().Field(i).Equal(f) {
			return nil, errors.New("the file has another schema")
		}
	}
	var rows [][]string
	for i := range r.NumRecords() {
		batch, err := r.RecordBatch(i)
		if err != nil {
			return nil, err
		}
		rows = append(rows, loadtest.Text(batch)...)
	}
	return rows, nil
}

func write(t *testing.T, o load.EncodeOptions, batches ...arrow.RecordBatch) []byte {
	t.Helper()
	var out bytes.Buffer
	e, err := arrowout.New(&out, batches[0].Schema(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := e.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBatchesAreOfOneSize(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	batch := loadtest.Random(mem, loadtest.Columns("n", arrow.PrimitiveTypes.Int64), 20_000, 1)
	defer batch.Release()
	r, err := ipc.NewFileReader(bytes.NewReader(write(t, load.EncodeOptions{}, batch, batch)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for i, want := range []int64{16_384, 16_384, 7_232} {
		if got, err := r.RecordBatch(i); err != nil || got.NumRows() != want {
			t.Errorf("batch %d: %v rows, not %d: %v", i, got, want, err)
		}
	}
}

func TestMetadataKeepsItsOrder(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	batch := loadtest.Random(mem, loadtest.AllTypes(), 1, 1)
	defer batch.Release()
	file := write(t, load.EncodeOptions{Metadata: []load.KeyValue{{Key: "z", Value: "1"}, {Key: "a", Value: "2"}}}, batch)
	r, err := ipc.NewFileReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	md := r.Schema().Metadata()
	if got := strings.Join(append(md.Keys(), md.Values()...), " "); got != "z a 1 2" {
		t.Errorf("the metadata is %q", got)
	}
}

func TestCompression(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := loadtest.Columns("id", arrow.PrimitiveTypes.Int64, "status", arrow.BinaryTypes.String)
	batch := loadtest.Build(mem, schema, 2000, func(b array.Builder, _, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(int64(row))
		case *array.StringBuilder:
			b.Append([]string{"Very satisfied", "Neutral", "Very dissatisfied"}[row%3])
		}
	})
	defer batch.Release()
	sizes := map[string]int{}
	for _, codec := range []string{"", "zstd", "none"} {
		file := write(t, load.EncodeOptions{Compression: codec}, batch)
		rows, err := read(file, batch.Schema())
		if err != nil {
			t.Fatal(err)
		}
		if diff := loadtest.Differs(batch.Schema(), loadtest.Text(batch), rows); diff != "" {
			t.Errorf("%q: %s", codec, diff)
		}
		sizes[codec] = len(file)
	}
	if sizes[""] != sizes["zstd"] || sizes["zstd"]*2 > sizes["none"] {
		t.Errorf("sizes: %v", sizes)
	}
	for _, codec := range []string{"gzip", "snappy", "lz4"} {
		if _, err := arrowout.New(&bytes.Buffer{}, batch.Schema(), load.EncodeOptions{Compression: codec}); err == nil || !strings.Contains(err.Error(), codec) {
			t.Errorf("%q: %v", codec, err)
		}
	}
}
