package cli

import (
	"os"
	"testing"
	_ "time/tzdata" // as in cmd/formetl

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestMain lets the scripts, and tests that need a process of its own, run
// this test binary as formetl.
func TestMain(m *testing.M) {
	needs.FilesInMemory()
	testscript.Main(m, map[string]func(){
		"formetl": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)) },
	})
}
