package cells_test

import (
	"testing"
	"time"

	"github.com/formetl/formetl/load/internal/cells"
)

// FuzzAppendLocal holds the text to what the time package makes of it.
func FuzzAppendLocal(f *testing.F) {
	for _, us := range []int64{0, -1, 1_793_500_200_000_000, 1_767_322_999_123_000, -2_717_640_000_000_000, 253_402_300_799_000_000, 253_402_400_000_000_000, -62_200_000_000_000_000} {
		f.Add(us)
	}
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, us int64) {
		if y := time.UnixMicro(us).UTC().Year(); y < -9000 || y > 20_000 {
			return
		}
		at := time.UnixMicro(us).In(chicago)
		layout := time.DateTime
		switch {
		case at.Nanosecond()%1_000_000 != 0:
			layout += ".000000"
		case at.Nanosecond() != 0:
			layout += ".000"
		}
		if got, want := string(cells.AppendLocal([]byte("x"), us, chicago)), "x"+at.Format(layout); got != want {
			t.Errorf("%d: %s, not %s", us, got, want)
		}
	})
}
