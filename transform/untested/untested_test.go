package untested

import (
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
	// What is compiled last is imported, so that this test begins when others
	// are about to end, and takes no place from them.
	_ "github.com/formetl/formetl/load/s3"
	_ "github.com/formetl/formetl/load/xlsxout"
	_ "github.com/formetl/formetl/pipelines/infer"
	_ "github.com/formetl/formetl/pipelines/maintain"
)

// TestWhatWasLeftOut says at the end of `go test ./...` which tests were left out
// or run in a short version, and what they need. It is never red for that.
func TestWhatWasLeftOut(t *testing.T) { needs.Tell(t) }
