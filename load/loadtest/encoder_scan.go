package loadtest

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/formetl/formetl/load"
)

// encoderScanCases are about what Format.Scan finds in a file that the encoder wrote.
func encoderScanCases() []encoderCase {
	return []encoderCase{
		{"scan finds rows, columns and ids", caseScan},
		{"scan of a file without rows", func(t encoderTest) { t.scanned(0) }},
		{"scan of one row", func(t encoderTest) { t.scanned(1) }},
		{"scan of a file that is cut or changed", caseScanDamaged},
	}
}

// idOf is the id in a row of the cases.
func idOf(row int) int64 { return int64(row)*7 + 1<<40 }

// identified writes rows with an id behind a text.
func (t encoderTest) identified(rows int) (file []byte, columns []string) {
	hostile := t.hostile()
	schema := Columns("text", arrow.BinaryTypes.String, "id", arrow.PrimitiveTypes.Int64, "a, \"b\"", arrow.BinaryTypes.String)
	return t.encode(schema, Build(t.mem, schema, rows, func(b array.Builder, column, row int) {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(idOf(row))
		case *array.StringBuilder:
			if row%5 == 3 {
				b.AppendNull()
				return
			}
			b.Append(hostile[(row+column)%len(hostile)])
		}
	})), []string{"text", "id", "a, \"b\""}
}

func (t encoderTest) scan(file []byte, each func(id int64) error) (load.Scanned, error) {
	return t.format.Scan(io.NewSectionReader(bytes.NewReader(file), 0, int64(len(file))), "id", each)
}

// scanned writes a file and scans it.
func (t encoderTest) scanned(rows int) {
	t.Helper()
	file, columns := t.identified(rows)
	var ids []int64
	found, err := t.scan(file, func(id int64) error {
		ids = append(ids, id)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found.Rows != int64(rows) || len(ids) != rows {
		t.Fatalf("%d rows and %d ids, not %d", found.Rows, len(ids), rows)
	}
	if !slices.Equal(found.Columns, columns) && (rows > 0 || found.Columns != nil) { // JSON without rows tells none
		t.Errorf("columns %q, not %q", found.Columns, columns)
	}
	for row, id := range ids {
		if id != idOf(row) {
			t.Fatalf("row %d has the id %d, not %d", row, id, idOf(row))
		}
	}
}

func caseScan(t encoderTest) {
	t.scanned(5000)
	file, _ := t.identified(10)
	calls := 0
	if _, err := t.scan(file, func(int64) error { calls++; return errFull }); calls != 1 || err == nil || !strings.Contains(err.Error(), errFull.Error()) {
		t.Errorf("an error of each gave %d calls and %v", calls, err)
	}
	found, err := t.format.Scan(io.NewSectionReader(bytes.NewReader(file), 0, int64(len(file))), "", func(int64) error { return errFull })
	if err != nil || found.Rows != 10 {
		t.Errorf("without a column of ids: %+v, %v", found, err)
	}
}

// caseScanDamaged holds that a damaged file is an error, or shows in what was found,
// unless only texts were changed. It never gives rows that were not there.
func caseScanDamaged(t encoderTest) {
	const rows = 40
	file, _ := t.identified(rows)
	for at := 0; at < len(file); at += max(1, len(file)/97) {
		var ids int64
		count := func(int64) error { ids++; return nil }
		if found, err := t.scan(file[:at], count); err == nil && (found.Rows >= rows || ids != found.Rows && ids != 0) {
			t.Errorf("cut to %d of %d bytes it has %d rows and %d ids", at, len(file), found.Rows, ids)
		}
		changed := bytes.Clone(file)
		changed[at] ^= 0x20
		_, _ = t.scan(changed, count) // it must not panic
	}
}

// FuzzScan scans files that anybody may have written: each is called at most once for a
// row, and nothing panics.
func FuzzScan(f *testing.F, format load.Format, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var ids int64
		found, err := format.Scan(io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), "id", func(int64) error {
			ids++
			return nil
		})
		if err == nil && ids != 0 && ids > found.Rows || ids > int64(len(data)) {
			t.Errorf("%d ids in %d rows", ids, found.Rows)
		}
	})
}
