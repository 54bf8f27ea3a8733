package transport

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

func TestSecretShowsNothing(t *testing.T) {
	s := NewSecret("  " + Canary + "\r\n")
	if s.value != Canary {
		t.Errorf("value %q: blanks and line ends are cut off", s.value)
	}
	type holder struct {
		Key Secret
		Ptr *Secret
	}
	h := holder{s, &s}
	asJSON, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("x", "key", s, "ptr", &s, "holder", h)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", s, "holder", h)
	texts := string(asJSON) + log.String() + s.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
		texts += fmt.Sprintf("\n"+verb+" "+verb+" "+verb, s, &s, h)
	}
	for text := range strings.Lines(texts) {
		HidesKey(t, "text", text)
		if strings.Contains(text, fmt.Sprintf("%x", "c4n4ry")) {
			t.Errorf("hexadecimal: %s", text)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("key", "a key in text")
	f.Add(Canary, Canary)
	f.Add("%", "100%25")
	f.Add("é%/", "x")
	f.Fuzz(func(t *testing.T, key, text string) {
		s := NewSecret(key)
		if s.IsZero() || strings.Contains(redacted, s.value) {
			return
		}
		for _, form := range []string{s.value, Escape(s.value), url.QueryEscape(s.value), url.PathEscape(s.value)} {
			if out := s.Redact(text + "\x00" + form + "\x00" + text); strings.Contains(out, "\x00"+form+"\x00") {
				t.Errorf("key %q as %q stays in %q", key, form, out)
			}
		}
	})
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "a b", "a+b", "%20", "ü😀", "\x00\xff", "/?#[]@!$&'()*+,;=", "A-Za-z0-9-._~"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s)
		if strings.Trim(e, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%") != "" {
			t.Errorf("Escape(%q) = %q holds what a URL must not hold", s, e)
		}
		for how, unescape := range map[string]func(string) (string, error){"query": url.QueryUnescape, "path": url.PathUnescape} {
			if got, err := unescape(e); err != nil || got != s {
				t.Errorf("%s: Escape(%q) = %q comes back as %q, %v", how, s, e, got, err)
			}
			if got, err := unescape(LowerEscapes(e)); err != nil || got != s {
				t.Errorf("%s: lower escapes of %q come back as %q, %v", how, e, got, err)
			}
		}
	})
}

func TestRequestErrorSaysWhat(t *testing.T) {
	cause := &StatusError{Status: 502}
	for want, e := range map[string]*RequestError{
		"Get Forms failed: ": {Transaction: "Get Forms", Attempts: 1, Err: cause},
		"Get Form Status of form f failed after 3 attempts: HTTP ": {Transaction: "Get Form Status", Form: "f", Attempts: 3, Err: cause},
		"Get Results of form f (view 2) failed: HTTP ":             {Transaction: "Get Results", Form: "f", Asked: "view 2", Attempts: 1, Err: cause},
	} {
		if !strings.HasPrefix(e.Error(), want) {
			t.Errorf("%q, want %q", e, want)
		}
	}
}
