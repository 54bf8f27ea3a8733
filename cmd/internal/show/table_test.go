package show

import (
	"syscall"
	"testing"

	"github.com/formetl/formetl/cmd/internal/exit"
)

// TestCell holds that no name of the service can steer a terminal or break a
// table's line.
func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "two\nlines\tand a tab": "two lines and a tab", "\x1b[31mred\x1b[0m": "[31mred [0m",
		"a\u202eb": "a b", "bad\xffbyte": "bad\uFFFDbyte", "\r\n": "", "é 山": "é 山",
	} {
		if got := Cell(text); got != want {
			t.Errorf("Cell(%q) = %q, want %q", text, got, want)
		}
	}
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
