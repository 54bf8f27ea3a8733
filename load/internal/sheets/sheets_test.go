package sheets_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/formetl/formetl/load/internal/sheets"
)

func TestUnits(t *testing.T) {
	for _, s := range []string{"", "abc", "é", "日本", "😀", "a😀é日b", strings.Repeat("\U0010FFFF", 3), "\uFFFD\uFEFF"} {
		want := len(utf16.Encode([]rune(s)))
		if got, bytes := sheets.Units(s), sheets.Units([]byte(s)); got != want || bytes != want {
			t.Errorf("%q: %d and %d units, not %d", s, got, bytes, want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1_048_576: "1,048,576", 999_999: "999,999"} {
		if got := sheets.Thousands(n); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
}
