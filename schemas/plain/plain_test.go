package plain

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestLine holds that no text of the service can steer a terminal, break a line, or
// reverse what stands around it.
func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "": "", "é 山 😀 الاسم": "é 山 😀 الاسم", "two\nlines\tand a tab": "two lines and a tab", "\r\n": "",
		"\x1b[31mred\x1b[0m": "[31mred [0m", "\x1b]0;title\x07": "]0;title", "bell\x07\x08\x7f": "bell", "\x00a\x00": "a",
		"c1 \u009b31m": "c1 31m", "\u0085next": "next", "\u2028line\u2029paragraph": "line paragraph",
		"a\u202eb\u202c": "a b", "\u2066x\u2069": "x", "\u200fright\u200e": "right", "\u061cx": "x",
		"bad\xffbyte": "bad\uFFFDbyte", "half \xf0\x9f": "half \uFFFD", "nb\u00a0sp": "nb sp", "  a   b ": "a b",
	} {
		if got := Line(text); got != want {
			t.Errorf("Line(%q) = %q, want %q", text, got, want)
		}
	}
	var all strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		all.WriteRune(r)
	}
	for _, r := range Line(all.String()) {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.IsSpace(r) && r != ' ' {
			t.Fatalf("%U is left", r)
		}
	}
	if got := Cut("abcdef", 4); got != "abc…" || Cut("abcd", 4) != "abcd" {
		t.Errorf("Cut: %q", got)
	}
	if got := Lines("\ta  b\n\u202ec\x1b[0m\u2028\xff\n"); got != "\ta  b\n c [0m \uFFFD\n" {
		t.Errorf("Lines: %q", got)
	}
	for r := rune(0); r <= 0x3000; r++ {
		data, err := json.Marshal(string(r))
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(JSON(data), &back); err != nil || strings.ContainsFunc(string(JSON(data)), Unsafe) || utf8.ValidRune(r) && back != string(r) {
			t.Fatalf("%U: %q, %v", r, JSON(data), err)
		}
	}
}
