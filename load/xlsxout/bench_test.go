package xlsxout_test

import (
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/xlsxout"
)

func BenchmarkEncode(b *testing.B) {
	loadtest.Bench(b, xlsxout.Format(), load.EncodeOptions{Zone: loadtest.Chicago()})
}
