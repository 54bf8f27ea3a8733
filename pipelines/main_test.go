package pipelines_test

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

func TestMain(m *testing.M) {
	needs.FilesInMemory()
	debug.SetGCPercent(400) // a quarter of the processors' time would go into collecting small worlds
	os.Exit(m.Run())
}
