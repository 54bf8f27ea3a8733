package formservice

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzJSON writes a text; encoding/json must read it back.
func FuzzJSON(f *testing.F) {
	for _, v := range []string{"", "plain", "a/b\\\"", "\r\n\t", "é€\u0085\u2028", "😀\U0010ffff", "\x00\x1f\x7f\ufffe", "\xff\xe2\x82"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := &jsonWriter{}
		w.open('{')
		w.member("a", text)
		w.member("b", text)
		w.close('}')
		var got struct{ A, B string }
		if err := json.Unmarshal(w.buf, &got); err != nil {
			t.Fatalf("%q: %v", w.buf, err)
		}
		if want := readable(text); got.A != want || got.B != want {
			t.Fatalf("%q arrives as %q", text, got)
		}
	})
}

// TestJSONControl writes a character that XML forbids in each way.
func TestJSONControl(t *testing.T) {
	for control, want := range map[string]string{"": "\"a\ufffdb\"", "ref": `"a\u000bb"`, "raw": "\"a\vb\""} {
		w := &jsonWriter{control: control}
		if w.text("a\vb"); string(w.buf) != want {
			t.Errorf("control %q: %q, want %q", control, w.buf, want)
		}
	}
}

// TestInstants reads wall-clock times around both changes of a clock.
func TestInstants(t *testing.T) {
	for _, c := range []struct{ zone, wall, want string }{
		{"America/Chicago", "2025-03-09 01:59:59", "2025-03-09T07:59:59.000Z"},
		{"America/Chicago", "2025-03-09 02:30:00", "2025-03-09T08:30:00.000Z"}, // skipped: as 03:30
		{"America/Chicago", "2025-03-09 03:00:00", "2025-03-09T08:00:00.000Z"},
		{"America/Chicago", "2025-11-02 00:59:59", "2025-11-02T05:59:59.000Z"},
		{"America/Chicago", "2025-11-02 01:30:00", "2025-11-02T06:30:00.000Z"}, // the first of two
		{"America/Chicago", "2025-11-02 02:00:00", "2025-11-02T08:00:00.000Z"},
		{"America/Chicago", "1960-01-01 00:00:00", "1960-01-01T06:00:00.000Z"},
		{"Australia/Lord_Howe", "2026-04-05 01:45:00", "2026-04-04T14:45:00.000Z"}, // half an hour comes twice
		{"UTC", "2026-03-08 02:30:00", "2026-03-08T02:30:00.000Z"},
		{"UTC", "not a date", "not a date"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := (clock{zone: zone}).date(1, c.wall); !ok || got != c.want {
			t.Errorf("%s in %s is %s, want %s", c.wall, c.zone, got, c.want)
		}
	}
	c := clock{zone: chicago(t), random: true}
	seen := map[int64]bool{}
	for id := range int64(100) {
		at := c.instant(id, 0)
		if at < 6*3600*1000 || at >= 6*3600*1000+1000 || at != c.instant(id, 0) {
			t.Fatalf("id %d: %d", id, at)
		}
		seen[at] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d fractions of 100 results", len(seen))
	}
}
