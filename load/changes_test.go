package load_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

// changesText is what goldenChanges looks like in a manifest.
const changesText = `"changes": {
    "method": "changes",
    "known_to": "2026-01-02 23:59:59",
    "known": [
      {
        "id": 9,
        "date_update": "2026-01-02 23:59:59"
      }
    ],
    "witness": "user_ip",
    "witness_at": "2026-02-01T10:11:12Z",
    "later": [
      12
    ]
  },
  `

func goldenChanges() *load.Changes {
	return &load.Changes{
		Method: load.MethodChanges, KnownTo: wall("2026-01-02 23:59:59"),
		Known:   []load.ChangedResult{{ID: 9, At: wall("2026-01-02 23:59:59")}},
		Witness: "user_ip", WitnessAt: time.Date(2026, 2, 1, 11, 11, 12, 345, time.FixedZone("", 3600)),
		Later: []int64{12},
	}
}

// withChanges returns the golden manifest with a text before its requests.
func withChanges(text string) string {
	return strings.Replace(golden, `"requests"`, text+`"requests"`, 1)
}

func TestManifestChanges(t *testing.T) {
	m := goldenManifest()
	m.Changes, m.Verified.Method = goldenChanges(), load.MethodChanges
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(withChanges(changesText), `"match": true`, `"match": true,
    "method": "changes"`, 1)
	if string(data) != want {
		t.Errorf("got\n%s\nwant\n%s", data, want)
	}
	if !reflect.DeepEqual(m.Changes, goldenChanges()) {
		t.Error("Encode changed the caller's changes")
	}
	back, err := load.DecodeManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	m.Changes.WitnessAt = m.Changes.WitnessAt.UTC().Truncate(time.Second)
	if !reflect.DeepEqual(back.Changes, m.Changes) || back.Verified != m.Verified {
		t.Errorf("got\n%+v\nwant\n%+v", back.Changes, m.Changes)
	}
}

// Texts that are no UTF-8 and lists without elements are written so that they
// are read as the same again.
func TestManifestStrangeChanges(t *testing.T) {
	m := goldenManifest()
	m.Changes = &load.Changes{Method: load.MethodLookback, Reason: "\xff", Witness: "a\xfe", Known: []load.ChangedResult{}, Later: []int64{}}
	m.Verified.Method = load.MethodCounts
	first, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"witness_at", `"known":`, "later"} {
		if strings.Contains(string(first), absent) {
			t.Errorf("%s is in\n%s", absent, first)
		}
	}
	back, err := load.DecodeManifest(first)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := back.Encode(); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second time it is\n%s\nafter\n%s (%v)", second, first, err)
	}
}

func TestDecodeManifestRefusesChanges(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"another method", `"method": "changes"`, `"method": "guess"`, `names the method "guess"`},
		{"no method", `"method": "changes",`, ``, `names the method ""`},
		{"a moment that is none", `"known_to": "2026-01-02 23:59:59"`, `"known_to": "yesterday"`, "is not a time"},
		{"a change with a negative id", `"id": 9`, `"id": -9`, "negative id"},
		{"a later result with a negative id", "12\n", "-12\n", "negative id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			whole := withChanges(changesText)
			text := strings.Replace(whole, test.old, test.new, 1)
			if text == whole {
				t.Fatal("the change changes nothing")
			}
			_, err := load.DecodeManifest([]byte(text))
			if me := (*load.ManifestError)(nil); !errors.As(err, &me) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
