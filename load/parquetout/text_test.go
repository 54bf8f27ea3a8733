package parquetout

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// The bounds of a column index are the library's, and hold no more memory than
// they need.
func TestTextIndexer(t *testing.T) {
	const cut = 16
	plain, wrapped := parquet.String().Type(), textType{parquet.String().Type()}
	of, own := plain.NewColumnIndexer(cut), wrapped.NewColumnIndexer(cut)
	for _, page := range [][2]string{
		{"a", "b"},
		{"", "z"},
		{string(bytes.Repeat([]byte("k"), 30_000)), string(bytes.Repeat([]byte("x"), 30_000))},
		{"", string(bytes.Repeat([]byte{0xff}, 30_000))},
	} {
		for _, x := range []parquet.ColumnIndexer{of, own} {
			x.IndexPage(10, 1, parquet.ByteArrayValue([]byte(page[0])), parquet.ByteArrayValue([]byte(page[1])))
		}
	}
	for _, x := range []parquet.ColumnIndexer{of, own} {
		x.IndexPage(10, 10, parquet.Value{}, parquet.Value{}) // nulls alone
	}
	want, got := of.ColumnIndex(), own.ColumnIndex()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the index is %+v, the library's %+v", got, want)
	}
	for _, bounds := range [][][]byte{got.MinValues, got.MaxValues} {
		for _, b := range bounds {
			if cap(b) > 2*cut {
				t.Errorf("%q lies in %d bytes", b, cap(b))
			}
		}
	}
}
