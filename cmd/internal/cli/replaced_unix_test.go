//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
)

// TestForeignFiles: doctor says, and a run says once, before the first request, that it replaces a file that no
// run wrote. What a run wrote is replaced without a word.
func TestForeignFiles(t *testing.T) {
	_, server := newService(testKey, smallForm())
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write(t, dir, "mine.csv", "mine")
	file := pipelineFile(t, dir, "p", server.URL, "", "forms: [form1]\nload: [{path: mine.csv}, {path: new.csv}]")
	do := func(want int, foreign bool, args ...string) {
		t.Helper()
		code, out, told := inProcess(testKey, args...)
		told += out
		says := strings.Count(told, "no manifest of formetl beside it")
		if foreign && (says != 1 || !strings.Contains(told, "mine.csv")) || !foreign && says != 0 || code != want {
			t.Errorf("%v ends with %d: %s", args, code, told)
		}
		if strings.Contains(told, "msg=planned") && foreign && strings.Index(told, "msg=planned") < strings.Index(told, "no manifest") {
			t.Errorf("it is told too late: %s", told)
		}
	}
	do(console.ExitOK, true, "doctor", file)
	do(console.ExitOK, true, "run", file)
	do(console.ExitOK, false, "run", file)
}
