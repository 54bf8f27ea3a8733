package parquetout_test

import (
	"bytes"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/source"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// inMemory is a file for xitongsys's reader.
type inMemory struct {
	*bytes.Reader
	data []byte
}

func (f inMemory) Close() error                              { return nil }
func (f inMemory) Write([]byte) (int, error)                 { return 0, io.ErrClosedPipe }
func (f inMemory) Create(string) (source.ParquetFile, error) { return nil, io.ErrClosedPipe }
func (f inMemory) Open(string) (source.ParquetFile, error) {
	return inMemory{bytes.NewReader(f.data), f.data}, nil
}

// TestXitongsysReads: a reader that shares no code with Arrow reads every type, nulls, lists,
// wide decimals and long texts. It does not tell an empty list from a missing one.
func TestXitongsysReads(t *testing.T) {
	needs.Slow(t)
	batch := loadtest.Random(checked(t), loadtest.AllTypes(), 5000, 7)
	defer batch.Release()
	data := write(t, load.EncodeOptions{}, batch)
	r, err := reader.NewParquetReader(inMemory{bytes.NewReader(data), data}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.ReadStop()
	rows, err := r.ReadByNumber(int(r.GetNumRows()))
	if err != nil {
		t.Fatal(err)
	}
	want := loadtest.Text(batch)
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, row := range rows {
		for c, field := range batch.Schema().Fields() {
			got, want := xitongsysText(reflect.ValueOf(row).Field(c), field.Type), want[i][c]
			if arrow.IsListLike(field.Type.ID()) && want == loadtest.Null {
				want = "[]"
			}
			if got != want {
				t.Fatalf("row %d: %s is %s, want %s", i, field.Name, got, want)
			}
		}
	}
}

// xitongsysText gives a value as loadtest.Text does.
func xitongsysText(v reflect.Value, of arrow.DataType) string {
	if list, is := of.(arrow.ListLikeType); is {
		elements := make([]string, v.Len())
		for i := range elements {
			elements[i] = xitongsysText(v.Index(i), list.Elem())
		}
		return loadtest.ListText(elements)
	}
	if v.IsNil() {
		return loadtest.Null
	}
	v = v.Elem()
	switch of := of.(type) {
	case *arrow.Date32Type:
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(v.Int())).Format(time.DateOnly)
	case *arrow.TimestampType:
		return loadtest.TimeText(time.UnixMicro(v.Int()))
	case *arrow.Float64Type:
		return loadtest.FloatText(v.Float())
	case *arrow.Decimal128Type:
		unscaled := new(big.Int)
		if v.Kind() == reflect.String { // big endian, two's complement
			unscaled.SetBytes([]byte(v.String()))
			if v.String()[0] >= 0x80 {
				unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*v.Len()))) //nolint:gosec // 16 bytes
			}
		} else {
			unscaled.SetInt64(v.Int())
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(of.Scale)), nil)
		return new(big.Rat).SetFrac(unscaled, scale).FloatString(int(of.Scale))
	case *arrow.Int64Type:
		return strconv.FormatInt(v.Int(), 10)
	}
	return fmt.Sprint(v.Interface())
}
