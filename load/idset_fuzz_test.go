package load_test

import (
	"errors"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/formetl/formetl/load"
)

// FuzzIDSet reads sets of ids that anybody may have written: what is taken is a
// set that is written again and read as the same, anything else is ErrIDs.
func FuzzIDSet(f *testing.F) {
	for _, ids := range [][]uint64{{}, {0}, {1, 2, 3}, {7, 1 << 40, 1<<63 - 1}} {
		data, _, err := load.EncodeIDs(roaring64.BitmapOf(ids...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ids, err := load.DecodeIDs(data)
		if err != nil {
			if !errors.Is(err, load.ErrIDs) {
				t.Errorf("it is refused by %v", err)
			}
			return
		}
		if ids.GetCardinality() > 1<<16 {
			return // a few bytes may stand for more ids than a test has memory for
		}
		again, _, err := load.EncodeIDs(ids)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := load.DecodeIDs(again); err != nil || !same.Equals(roaring64.BitmapOf(ids.ToArray()...)) {
			t.Errorf("%v: it is read as another set", err)
		}
	})
}
