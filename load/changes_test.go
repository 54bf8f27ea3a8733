package load_test

import (
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
