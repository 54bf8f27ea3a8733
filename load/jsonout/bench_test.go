package jsonout_test

import (
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/loadtest"
)

func BenchmarkEncode(b *testing.B) {
	for _, format := range []load.Format{jsonout.NDJSON(), jsonout.JSON()} {
		b.Run(format.Name, func(b *testing.B) {
			loadtest.Bench(b, format, load.EncodeOptions{Zone: loadtest.Chicago()})
		})
	}
}
