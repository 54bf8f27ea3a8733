package loadtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/load"
)

// Limits are documented limits of a format, within which the cases stay. The
// zero value is no limit.
type Limits struct {
	// MaxText is the largest number of bytes of a text, 0 for no limit.
	MaxText int
	// XMLText tells that texts must not have characters that XML forbids.
	XMLText bool
	// WallClock tells that timestamps are written without an offset. The cases
	// use UTC then.
	WallClock bool
}

// Encoder runs the cases that every format must pass, within its limits. read is a reader of
// the format that shares no code with the encoder.
func Encoder(t *testing.T, format load.Format, read Read, limits Limits) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t encoderTest)
	}{
		// The values that a reader reads are those that were written.
		{"no rows", caseNoRows},
		{"one row", func(t encoderTest) { t.roundTrip(t.random(AllTypes(), 1, 7)) }},
		{"all null", caseAllNull},
		{"all types", func(t encoderTest) { t.roundTrip(t.random(AllTypes(), 300, 1)) }},
		{"hostile strings", caseHostileStrings},
		{"lists", caseLists},
		{"names", caseNames},
		{"300 columns", caseWide},
		{"long strings", caseLongStrings},
		{"decimals", caseDecimals},
		{"timestamps", caseTimestamps},
		{"dates", caseDates},
		{"more rows than a row group", caseManyRows},
		{"values that change after the sample", caseChange},
		// Equal bytes, errors and the ownership of batches.
		{"the same bytes for any batches", caseBatches},
		{"batches without rows", caseEmptyBatches},
		{"an error at any byte", caseErrorAnywhere},
		{"the writer stays open", caseWriterStaysOpen},
		{"required columns", caseRequiredValues},
		{"options left out", caseNoOptions},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(Overwriting{})
			defer mem.AssertSize(t, 0)
			c.run(encoderTest{T: t, format: format, read: read, limits: limits, mem: mem})
		})
	}
}

// encoderTest is the argument of a case.
type encoderTest struct {
	*testing.T
	format load.Format
	read   Read
	limits Limits
	mem    memory.Allocator
}

// random is Random within the format's limits.
func (t encoderTest) random(schema *arrow.Schema, rows int, seed uint64) arrow.RecordBatch {
	return randomOf(t.mem, schema, rows, seed, t.hostile())
}

// many is how many rows are more than a row group or a dictionary holds. Formats that have
// none of these write a tenth of them.
func (t encoderTest) many(rows int) int {
	if t.format.Text || t.format.Cells {
		return rows / 10
	}
	return rows
}

// hostile is HostileStrings within the format's limits.
func (t encoderTest) hostile() []string {
	all := HostileStrings()
	if t.limits.XMLText {
		all = slices.DeleteFunc(all, func(s string) bool {
			return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' })
		})
	}
	return all
}

// open returns an encoder that writes to w.
func (t encoderTest) open(w io.Writer, schema *arrow.Schema) load.Encoder {
	t.Helper()
	e, err := t.format.New(w, schema, t.options())
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return e
}

// options are the options of all cases. Their zone has daylight saving time.
func (t encoderTest) options() load.EncodeOptions {
	o := load.EncodeOptions{
		Zone:     Chicago(),
		Metadata: []load.KeyValue{{Key: "formetl.form", Value: "form1"}, {Key: "formetl.a", Value: "b"}},
	}
	if t.limits.WallClock {
		o.Zone = time.UTC
	}
	return o
}

// Chicago is a zone whose offset changes in March and November.
func Chicago() *time.Location {
	zone, err := time.LoadLocation("America/Chicago")
	if err != nil {
		panic(err)
	}
	return zone
}

// encode returns the file of the batches. It releases each as soon as it is
// written, as a pipeline does.
func (t encoderTest) encode(schema *arrow.Schema, batches ...arrow.RecordBatch) []byte {
	t.Helper()
	var out bytes.Buffer
	e := t.open(&out, schema)
	for _, b := range batches {
		if err := e.Write(b); err != nil {
			t.Fatalf("Write: %v", err)
		}
		b.Release()
	}
	if err := e.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return out.Bytes()
}

// roundTrip writes the batch, reads the file back and compares.
func (t encoderTest) roundTrip(batch arrow.RecordBatch) {
	t.Helper()
	want := Text(batch)
	schema := batch.Schema()
	t.compare(t.encode(schema, batch), schema, want)
}

func (t encoderTest) compare(file []byte, schema *arrow.Schema, want [][]string) {
	t.Helper()
	got, err := t.read(file, schema)
	if err != nil {
		t.Fatalf("the reader: %v", err)
	}
	if diff := Differs(schema, want, got); diff != "" {
		t.Error(diff)
	}
}

// failingWriter accepts a number of bytes and then fails.
type failingWriter struct{ room int }

var errFull = errors.New("no space left")

// Write fails once the limit is reached.
func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.room {
		n := w.room
		w.room = 0
		return n, errFull
	}
	w.room -= len(p)
	return len(p), nil
}

// closeWatcher is a writer that must not be closed.
type closeWatcher struct {
	bytes.Buffer
	closed bool
}

// Close records that it was called.
func (w *closeWatcher) Close() error { w.closed = true; return nil }

// Differs describes the first cell in which the rows differ, or is "".
func Differs(schema *arrow.Schema, want, got [][]string) string {
	if len(want) != len(got) {
		return fmt.Sprintf("%d rows, not %d", len(got), len(want))
	}
	for row := range want {
		if len(want[row]) != len(got[row]) {
			return fmt.Sprintf("row %d: %d columns, not %d", row, len(got[row]), len(want[row]))
		}
		for i := range want[row] {
			if want[row][i] != got[row][i] {
				return fmt.Sprintf("row %d, column %d %q (%s): %.200q, not %.200q",
					row, i, schema.Field(i).Name, schema.Field(i).Type, got[row][i], want[row][i])
			}
		}
	}
	return ""
}
