package xlsxout_test

import (
	"testing"

	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/xlsxout"
)

func TestConformance(t *testing.T) {
	loadtest.Encoder(t, xlsxout.Format(), read, loadtest.Limits{MaxText: 32_767, XMLText: true, WallClock: true})
}
