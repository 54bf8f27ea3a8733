package pipelines_test

import (
	"os"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

func TestMain(m *testing.M) {
	needs.FilesInMemory()
	os.Exit(m.Run())
}
