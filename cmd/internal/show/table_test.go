package show

import (
	"syscall"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
)

// TestColumns holds that no name of the service breaks a table's line.
func TestColumns(t *testing.T) {
	if got := Columns("  ", [][]string{{"A", "B"}, {"long\nname", ""}}); got != "  A          B\n  long name\n" {
		t.Errorf("table %q", got)
	}
}

func TestPrintFails(t *testing.T) {
	for _, err := range []error{Print(failing{}, []byte("x")), JSON(failing{}, 1), Table(failing{}, []string{"a"})} {
		if exit.Code(err) != exit.IO {
			t.Errorf("%v: %d", err, exit.Code(err))
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
