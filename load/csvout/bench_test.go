package csvout_test

import (
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/loadtest"
)

func BenchmarkEncode(b *testing.B) {
	for _, profile := range []string{csvout.Strict, csvout.Excel} {
		b.Run(profile, func(b *testing.B) {
			loadtest.Bench(b, csvout.Format(), load.EncodeOptions{Zone: loadtest.Chicago(), Profile: profile})
		})
	}
}
