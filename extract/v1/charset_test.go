package v1

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/formetl/formetl/extract/page"
)

func TestCharsets(t *testing.T) {
	const (
		mark = "\xef\xbb\xbf"
		e8   = "\xc3\xa9" // é in UTF-8; in ISO-8859-1 it is Ã©
		e1   = "\xe9"     // é in ISO-8859-1, invalid in UTF-8
		fffd = "\ufffd"
	)
	declared := func(name string) string { return "<?xml version='1.0' encoding='" + name + "'?>" }
	for _, c := range []struct{ name, contentType, before, value, want string }{
		{"nothing said", "", "", e8, "é"},
		{"nothing said, invalid", "", "", e1, fffd},
		{"no charset said", "application/xml", "", e8, "é"},
		{"a mark", "", mark, e8, "é"},
		{"a mark before all else", "text/xml; charset=iso-8859-1", mark + declared("ISO-8859-1"), e8, "é"},
		{"declared", "", declared("ISO-8859-1"), e1, "é"},
		{"declared in other words", "", declared("Latin1"), e1, "é"},
		{"declared in double quotes", "", `<?xml version="1.0" encoding="iso-8859-1" standalone="yes" ?>`, e1, "é"},
		{"declared behind blanks", "", "\r\n " + declared("ISO-8859-1"), e1, "é"},
		{"declared UTF-8", "", declared("utf-8"), e8, "é"},
		{"declared US-ASCII", "", declared("US-ASCII"), e8, "é"},
		{"header", "text/xml; charset=ISO-8859-1", "", e1, "é"},
		{"header in quotes", `text/xml; charset="iso-8859-1"; x=y`, "", e1, "é"},
		{"a header that cannot be parsed", "text/xml; charset", declared("ISO-8859-1"), e1, "é"},
		{"header before an unknown declaration", "text/xml; charset=ISO-8859-1", declared("windows-1252"), "\x80", "\u0080"},
		{"header of valid UTF-8 against declaration", "text/xml; charset=UTF-8", declared("ISO-8859-1"), e8, "é"},
		{"header of invalid UTF-8 against declaration", "text/xml; charset=UTF-8", declared("ISO-8859-1"), e1, "é"},
		{"header against declaration of valid UTF-8", "text/xml; charset=ISO-8859-1", declared("UTF-8"), e8, "é"},
		{"header against declaration of invalid UTF-8", "text/xml; charset=ISO-8859-1", declared("UTF-8"), e1, "é"},
		{"header and no declaration", "text/xml; charset=ISO-8859-1", "", e8, "Ã©"},
		{"unknown header against declaration of valid UTF-8", "text/xml; charset=shift_jis", declared("UTF-8"), e8, "é"},
		{"header against an unknown declaration", "text/xml; charset=utf-8", declared("UTF-16"), e8, "é"},
		{"ISO-8859-1 has control characters", "", declared("ISO-8859-1"), "\x80\x85\x9f", "\u0080\u0085\u009f"},
		{"all of ISO-8859-1", "", declared("ISO-8859-1"), "a&#233;\xa0\xff", "aé\u00a0ÿ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := decodePage([]byte(c.before+oneValue(c.value)), c.contentType)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Release()
			if got := string(p.Value(p.Cells(0)[0], 0)); got != c.want || p.Replaced != strings.Count(c.want, fffd) {
				t.Errorf("read %q with %d replaced, want %q", got, p.Replaced, c.want)
			}
		})
	}
}

func TestUnknownCharsets(t *testing.T) {
	for _, c := range []struct{ contentType, before, named string }{
		{"text/xml; charset=UTF-16", "", `charset "UTF-16"`},
		{"text/xml; charset=shift_jis", "<?xml version='1.0' encoding='ISO-8859-1'?>", `charset "shift_jis"`},
		{"", "<?xml version='1.0' encoding='windows-1252'?>", `charset "windows-1252"`},
		{"", "<?xml version='1.0' encoding='EBCDIC-CP-US'?>", `charset "EBCDIC-CP-US"`},
		{"", "<?xml version='1.0' encoding='\u202egpj" + strings.Repeat("x", 200) + "'?>", `charset "\u202egpj` + strings.Repeat("x", 36) + `" is not`},
	} {
		_, err := decodePage([]byte(c.before+oneValue("x")), c.contentType)
		if err == nil || !strings.Contains(err.Error(), c.named) {
			t.Errorf("%q, %q: err = %v", c.contentType, c.before, err)
		}
	}
}

func TestDeclarations(t *testing.T) {
	for text, want := range map[string]charset{
		"<a/>":                                                charsetNone,
		"<?xml?>":                                             charsetNone,
		"<?xml-x encoding='latin1'?>":                         charsetNone,
		"<?xml version='1.0'?>":                               charsetNone,
		"<?xml version='1.0' encoding=''?>":                   charsetNone,
		"<?xml version='1.0' encoding=utf-8?>":                charsetNone,
		"<?xml version='1.0'?><a encoding='x'>":               charsetNone,
		"<?xml\tversion = \"1.0\"\nencoding\r=\n'Latin1'\n?>": charsetLatin1,
		"<?xml encoding=' l9 '?>":                             charsetUnknown,
	} {
		label := declaredCharset([]byte(text))
		if got := charsetOf(string(label)); got != want {
			t.Errorf("%q: %q, %s, want %s", text, label, got, want)
		}
	}
}

// clean returns a text as a decoder has it.
func clean(data []byte, controls bool) (text []byte, replaced int) {
	b := page.Builder{Text: bytes.Clone(data), Page: new(page.Page)}
	b.Clean(controls)
	return b.Text, b.Page.Replaced
}

// FuzzCleanText holds it to a rune by rune version.
func FuzzCleanText(f *testing.F) {
	for _, v := range hostileValues {
		f.Add([]byte(v))
	}
	for _, v := range append(fuzzSeeds, "a\r\nb\rc\n\rd\r", "\r\r\n\r\n\n", "\x00\x1f\x7f", "\ufffe\uffff\ufffd", "\xf4\x90\x80\x80", "x\xe2\x82", "line\r\n") {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want []byte
		replaced := 0
		for i, r := range string(data) {
			switch {
			case r == '\r':
				want = append(want, '\n')
			case r == '\n' && i > 0 && data[i-1] == '\r':
			case !page.Allowed(r) || r == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\ufffd")):
				want = append(want, "\ufffd"...)
				replaced++
			default:
				want = utf8.AppendRune(want, r)
			}
		}
		got, n := clean(data, true)
		if !bytes.Equal(got, want) || n != replaced {
			t.Fatalf("%q: %q, %d; want %q, %d", data, got, n, want, replaced)
		}
		if again, n := clean(got, true); !bytes.Equal(again, got) || n != 0 {
			t.Fatalf("%q is not clean", got)
		}
		kept, _ := clean(data, false) // without the control characters
		if again, _ := clean(kept, true); !bytes.Equal(again, want) || bytes.Count(kept, []byte("\r")) != bytes.Count(data, []byte("\r")) {
			t.Fatalf("%q: %q, then %q, want %q", data, kept, again, want)
		}
	})
}
