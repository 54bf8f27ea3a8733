package cells_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/formetl/formetl/load/internal/cells"
)

func TestUnits(t *testing.T) {
	for _, s := range []string{"", "abc", "é", "日本", "😀", "a😀é日b", strings.Repeat("\U0010FFFF", 3), "\uFFFD\uFEFF"} {
		want := len(utf16.Encode([]rune(s)))
		if got, bytes := cells.Units(s), cells.Units([]byte(s)); got != want || bytes != want {
			t.Errorf("%q: %d and %d units, not %d", s, got, bytes, want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1_048_576: "1,048,576", 999_999: "999,999"} {
		if got := cells.Thousands(n); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
}

// TestGuarded: texts that a spreadsheet would run as a formula, and others.
func TestGuarded(t *testing.T) {
	for want, texts := range map[bool][]string{
		false: {
			"", " ", "x", "Müller", "日本語", "😀", "٣", "true", "0", "5", "-5", "-3.14", "-0", "-007", "007", "1e5", "1-2", "5 -", "18+", "mar 5",
			"2026-01-02 03:04:05", "a=b", "a@b.c", "x-1", "'=1", "#1", "%", "$(rm)", "great ;-)", "5 + 3", "\u00a0x", strings.Repeat("\u00a0", 300) + "x",
		},
		true: {
			"=1+1", "+49 30 123", "+4930123", "-x", "-", "--", "-=1", "-5-", "-1,5", "-.5", "-5.", "-5\n", "-1e5", "@SUM(A1)", "\t=1", "\rx", "\nx",
			" =1+1", "\u00a0=1", " -x", " -5", " @x", "＝1+1", "＋1", "－1", "＠x", "  ＝1",
			"\u00a0=HYPERLINK(" + strings.Repeat("x", 500), "\u3000=" + strings.Repeat("x", 500), strings.Repeat("\u2003", 300) + "@x",
		},
	} {
		for _, text := range texts {
			if cells.Guarded(text) != want || cells.Guarded([]byte(text)) != want {
				t.Errorf("%q is told otherwise than %t", text, want)
			}
		}
	}
}
