package schemas

import (
	"strings"
	"testing"
	"unicode"
)

// TestOneLine holds that no text of the service can steer a terminal, break a line, or
// reverse what stands around it.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "": "", "é 山 😀 الاسم": "é 山 😀 الاسم", "two\nlines\tand a tab": "two lines and a tab", "\r\n": "",
		"\x1b[31mred\x1b[0m": "[31mred [0m", "\x1b]0;title\x07": "]0;title", "bell\x07\x08\x7f": "bell", "\x00a\x00": "a",
		"c1 \u009b31m": "c1 31m", "\u0085next": "next", "\u2028line\u2029paragraph": "line paragraph",
		"a\u202eb\u202c": "a b", "\u2066x\u2069": "x", "\u200fright\u200e": "right", "\u061cx": "x",
		"bad\xffbyte": "bad\uFFFDbyte", "half \xf0\x9f": "half \uFFFD", "nb\u00a0sp": "nb sp", "  a   b ": "a b",
	} {
		if got := OneLine(text); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", text, got, want)
		}
	}
	var all strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		all.WriteRune(r)
	}
	for _, r := range OneLine(all.String()) {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.IsSpace(r) && r != ' ' {
			t.Fatalf("%U is left", r)
		}
	}
	if got := Cut("abcdef", 4); got != "abc…" || Cut("abcd", 4) != "abcd" {
		t.Errorf("Cut: %q", got)
	}
}
