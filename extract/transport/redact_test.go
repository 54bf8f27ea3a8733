package transport

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// encoders are what a key may have gone through before it comes back.
func encoders() map[string]func(string) string {
	return map[string]func(string) string{
		"as it is":    func(s string) string { return s },
		"query":       url.QueryEscape,
		"path":        url.PathEscape,
		"ours":        Escape,
		"every byte":  func(s string) string { return percentAll(s, "%%%02x") },
		"EVERY BYTE":  func(s string) string { return percentAll(s, "%%%02X") },
		"lower query": func(s string) string { return LowerEscapes(url.QueryEscape(s)) },
		"html":        html.EscapeString,
		"hex html": func(s string) string {
			return strings.NewReplacer("&#34;", "&#x22;", "&#39;", "&#X27;").Replace(html.EscapeString(s))
		},
		"json": func(s string) string {
			data, _ := json.Marshal(s)
			return string(data[1 : len(data)-1])
		},
		"go":    func(s string) string { q := fmt.Sprintf("%q", s); return q[1 : len(q)-1] },
		"ascii": func(s string) string { q := fmt.Sprintf("%+q", s); return q[1 : len(q)-1] },
	}
}

func percentAll(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// TestRedactSpellings holds that a key is found after one encoder and, where
// that is not the same as before, after two alike or one of text on one of
// addresses.
func TestRedactSpellings(t *testing.T) {
	keys := []string{`ka+n a/r%y&=ü"<`, "plain-Key_1~.", `b\ack\\slash'`, "100%25", "%%%", "& amp;&", "emoji 😀 key", "<a&amp;b>", "a b+c", "ключ"}
	for _, key := range keys {
		s := NewSecret(key)
		for name, encode := range encoders() {
			once := encode(key)
			checkRedacted(t, s, key+", "+name, once)
			checkRedacted(t, s, key+", twice "+name, encode(once))
			checkRedacted(t, s, key+", json of "+name, encoders()["json"](once))
		}
		checkRedacted(t, s, key+", base64", base64.StdEncoding.EncodeToString([]byte(key)))
	}
}

func checkRedacted(t *testing.T, s Secret, name, spelling string) {
	t.Helper()
	if got := s.Redact("before " + spelling + " after"); got != "before [redacted] after" {
		t.Errorf("%s: %q became %q", name, spelling, got)
	}
}

// TestRedactLeaves holds that other text stays as it is.
func TestRedactLeaves(t *testing.T) {
	s := NewSecret(`ka+n a/r%y&=ü"<`)
	for _, text := range []string{
		"", "%", "%4", "%zz", "&", "&amp", "&#;", "&#x;", `\`, `\u`, `\u00`, "ka+n a/r%y", "ka%2Bn", `\x6`, strings.Repeat("&amp;", 50), strings.Repeat("%25", 50),
		strings.Repeat(`\`, 50),
	} {
		if got := s.Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestRedactShortKeys holds that a short key does not make messages unreadable: in free text
// it is removed where it is a whole word, in addresses and in what is sent everywhere. A key
// of eight characters or more is removed everywhere.
func TestRedactShortKeys(t *testing.T) {
	for _, c := range []struct{ key, text, free, sent string }{
		{"try", "an entry: try again, retry", "an entry: [redacted] again, retry", "an en[redacted]: [redacted] again, re[redacted]"},
		{"try", "bearer try", "bearer [redacted]", "bearer [redacted]"},
		{"try", "fs_api_key=try&fs_limit=1", "fs_api_key=[redacted]&fs_limit=1", "fs_api_key=[redacted]&fs_limit=1"},
		{"try", "fs_api_key%3Dtry%26x", "fs_api_key%3D[redacted]%26x", "fs_api_key%3D[redacted]%26x"},
		{"try", `"wrong key\ntry"`, `"wrong key\n[redacted]"`, `"wrong key\n[redacted]"`},
		{"try", "key %74%72%79, country", "key [redacted], country", "key [redacted], coun[redacted]"},
		{"try", "dHJ5, 747279, 1747279", "[redacted], [redacted], 1747279", "[redacted], [redacted], 1[redacted]"},
		{"try", "Get \"https://h/registry?a=entry\": entry", "Get \"https://h/regis[redacted]?a=en[redacted]\": entry", "Get \"https://h/regis[redacted]?a=en[redacted]\": en[redacted]"},
		{"try", "lo try_2 try2 atry éntry tryé", "lo try_2 try2 atry éntry tryé", "lo [redacted]_2 [redacted]2 a[redacted] én[redacted] [redacted]é"},
		{"try", "try", "[redacted]", "[redacted]"},
		{"a+b", "xa+by a+b", "xa+by [redacted]", "x[redacted]y [redacted]"},
		{"+b+", "a+b+c", "a[redacted]c", "a[redacted]c"},
		{"abcdefg", "xabcdefg", "xabcdefg", "x[redacted]"},
		{"abcdefgh", "xabcdefghx", "x[redacted]x", "x[redacted]x"},
	} {
		s := NewSecret(c.key)
		if got := s.Redact(c.text); got != c.free {
			t.Errorf("%s: %q became %q, want %q", c.key, c.text, got, c.free)
		}
		if got := s.RedactSent(c.text); got != c.sent {
			t.Errorf("%s, sent: %q became %q, want %q", c.key, c.text, got, c.sent)
		}
	}
}

// TestRedactLong holds that long texts are cut, and that a key across the cut
// does not leave its beginning behind.
func TestRedactLong(t *testing.T) {
	s := NewSecret(`ka+n a/r%y&=ü"<`)
	for shift := 0; shift < 80; shift += 7 {
		text := strings.Repeat("x", maxShown-shift) + percentAll(s.value, "%%%02x") + strings.Repeat("y", 1<<20)
		got := s.Redact(text)
		if len(got) > maxShown+10 || strings.Contains(got, "%6b") || !strings.HasSuffix(got, " ...") {
			t.Fatalf("shift %d: %d bytes that end with %q", shift, len(got), got[len(got)-40:])
		}
	}
}

// FuzzRedactSpellings holds that a spelled key never survives, and that text around it
// does not make the matcher fail.
func FuzzRedactSpellings(f *testing.F) {
	f.Add("before ", `ka+n a/r%y&=ü"<`, " after")
	f.Add("%25", "%25%", "25")
	f.Add("&amp;", "&amp;", "amp;")
	f.Add(`\\`, `\`, `\`)
	f.Fuzz(func(t *testing.T, before, key, after string) {
		s := NewSecret(key)
		bad := !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) // no key is like that
		if bad || s.IsZero() || len(key) > 200 || strings.Contains(redacted, s.value) {
			return
		}
		for name, encode := range encoders() {
			spelling := encode(s.value)
			if got := s.Redact(before + "\x00" + spelling + "\x00" + after); strings.Contains(got, "\x00"+spelling+"\x00") {
				t.Errorf("%s: %q is left in %q", name, spelling, got)
			}
		}
	})
}
