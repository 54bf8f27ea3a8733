package parquetout_test

import (
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/parquetout"
)

func BenchmarkEncode(b *testing.B) {
	for _, codec := range []string{"zstd", "snappy", "none"} {
		b.Run(codec, func(b *testing.B) { loadtest.Bench(b, parquetout.Format(), load.EncodeOptions{Compression: codec}) })
	}
}
