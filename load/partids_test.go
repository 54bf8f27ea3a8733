package load_test

import (
	"errors"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
)

// TestPartIDs: a set of ids is that of its part by number, lowest and highest id. Rows of an
// exploded list are of any number.
func TestPartIDs(t *testing.T) {
	s := newShop(t)
	data := idset.Encode(idset.Of(3, 5, 9))
	sum := idset.Sum(data)
	s.must(s.d.Put(t.Context(), load.IDsName(sum), data, load.AnyVersion))
	for _, c := range []struct {
		part     load.Part
		exploded bool
		want     error
	}{
		{load.Part{IDs: sum, Rows: 3, MinID: 3, MaxID: 9}, false, nil},
		{load.Part{IDs: sum, Rows: 7, MinID: 3, MaxID: 9}, true, nil},
		{load.Part{IDs: sum, Rows: 7, MinID: 3, MaxID: 9}, false, idset.ErrDamaged},
		{load.Part{IDs: sum, Rows: 3, MinID: 2, MaxID: 9}, true, idset.ErrDamaged},
		{load.Part{IDs: sum, Rows: 3, MinID: 3, MaxID: 10}, true, idset.ErrDamaged},
	} {
		if ids, err := load.PartIDs(t.Context(), s.d, c.part, c.exploded); !errors.Is(err, c.want) || err == nil && ids.Len() != 3 {
			t.Errorf("%+v, exploded %t: %d ids, %v", c.part, c.exploded, ids.Len(), err)
		}
	}
}
