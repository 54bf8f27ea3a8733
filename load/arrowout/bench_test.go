package arrowout_test

import (
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/arrowout"
	"github.com/formetl/formetl/load/loadtest"
)

func BenchmarkEncode(b *testing.B) {
	for _, codec := range []string{"zstd", "none"} {
		b.Run(codec, func(b *testing.B) { loadtest.Bench(b, arrowout.Format(), load.EncodeOptions{Compression: codec}) })
	}
}
