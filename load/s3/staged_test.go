package s3

import (
	"encoding/base64"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
)

func stagedSamples() []staged {
	many := staged{ID: "ABC234", Run: "run1", Upload: "u/1+2=="}
	for range MaxParts {
		many.Parts = append(many.Parts, stagedPart{ETag: `"0123456789abcdef0123456789abcdef"`, CRC32: "AAAAAA=="})
	}
	return []staged{
		{ID: "ABC234"},
		{Upload: "u"},
		{ID: "A", Run: "run1"},
		{ID: "A", Run: "run1", Upload: "u"},
		{ID: "ABC234", Run: "run1.x", Upload: "u", Parts: []stagedPart{{ETag: `"e"`}}},
		{ID: "Z", Run: "1", Upload: "\x00ü", Parts: []stagedPart{{ETag: "a", CRC32: "b"}, {ETag: "c"}}},
		many,
	}
}

func encoded(json string) string {
	return stagedScheme + base64.RawURLEncoding.EncodeToString([]byte(json))
}

func badStaged() []string {
	return []string{
		"", "x", "../../etc/passwd", stagedScheme, stagedScheme + "!", encoded(`{"id":"a b"}`), encoded(`{"id":"` + strings.Repeat("A", 65) + `"}`), encoded(`{"run":"r","upload":"u"}`),
		encoded(""), encoded("{}"),
		encoded(`{"id":"a","run":"r","upload":"u","parts":[{"e":"e"}]}`), encoded(`{"id":"A","run":"r","upload":"u","parts":[{"e":""}]}`),
		encoded(`{"id":"A","run":"r","upload":"u","parts":[{}]}`), encoded(`{"id":"A","run":"r","upload":"u","parts":[["a","b"]]}`),
		encoded(`{"id":"A","run":"r","upload":"u","parts":["e"]}`), encoded(`{"id":"A","run":"../x","upload":"u","parts":[{"e":"e"}]}`),
		encoded(`{"id":"A","run":"lease","upload":"u","parts":[{"e":"e"}]}`),
		encoded(`{"id":"A","run":"r","upload":"u","parts":[` + strings.Repeat(`{"e":"e"},`, MaxParts) + `{"e":"e"}]}`),
	}
}

func TestStagedRefused(t *testing.T) {
	d := &Destination{}
	for _, text := range badStaged() {
		if _, err := decodeStaged(text); !errors.Is(err, errNotStaged) {
			t.Errorf("%.60q gives %v", text, err)
		}
		p := load.Prepared{Name: "x.csv", Staged: text}
		if err := d.Commit(t.Context(), p); !errors.Is(err, load.ErrConfig) {
			t.Errorf("commit of %.60q gives %v", text, err)
		}
		if err := d.Abort(t.Context(), p); !errors.Is(err, load.ErrConfig) {
			t.Errorf("abort of %.60q gives %v", text, err)
		}
		if err := d.Check(t.Context(), p); !errors.Is(err, load.ErrConfig) {
			t.Errorf("check of %.60q gives %v", text, err)
		}
	}
}

func FuzzDecodeStaged(f *testing.F) {
	for _, s := range badStaged() {
		f.Add(s)
	}
	for _, s := range stagedSamples() {
		f.Add(s.encode())
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := decodeStaged(text)
		if err != nil {
			if !errors.Is(err, errNotStaged) || slices.ContainsFunc(stagedSamples(), func(s staged) bool { return s.encode() == text }) {
				t.Errorf("%.100q is refused: %v", text, err)
			}
			return
		}
		again := s.encode()
		if got, err := decodeStaged(again); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%q is read as %v, then %v, %v", text, s, got, err)
		}
	})
}
