package load_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

func wall(s string) load.WallTime {
	t, err := time.Parse("2006-01-02 15:04:05", s)
	if err != nil {
		panic(err)
	}
	return load.Wall(t)
}

const golden = `{
  "format": "parquet",
  "pipeline": "feedback",
  "form": "form1",
  "run_id": "20260201T000000Z-ab12",
  "created_at": "2026-02-01T10:11:12Z",
  "range": {
    "from": null,
    "to": "2026-01-03 00:00:00"
  },
  "watermark": "2026-01-03 00:00:00",
  "source": {
    "account": "acme",
    "timezone": "America/Chicago"
  },
  "schema": [
    {
      "name": "id",
      "type": "int64",
      "from": "result_id",
      "label": ""
    },
    {
      "name": "item_1",
      "type": "string",
      "from": "item:1",
      "label": "Name <first & last>",
      "pii": "truncate(3)",
      "list_as": "columns",
      "explode": true,
      "choices": [
        "red"
      ],
      "item_type": "checkbox",
      "index": 7,
      "gone": true
    }
  ],
  "parts": [
    {
      "path": "dt=2026-01-01/part-min-20260102T000000-000001-0000.parquet",
      "from": null,
      "to": "2026-01-02 00:00:00",
      "rows": 2,
      "rejected": 1,
      "min_id": 5,
      "max_id": 9,
      "bytes": 100,
      "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    },
    {
      "path": "dt=2026-01-02/part-20260102T000000-20260103T000000-000001-0000.parquet",
      "from": "2026-01-02 00:00:00",
      "to": "2026-01-03 00:00:00",
      "rows": 0,
      "rejected": 0,
      "min_id": null,
      "max_id": null,
      "bytes": 10,
      "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    },
    {
      "path": "dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet",
      "from": null,
      "to": null,
      "rows": 1,
      "rejected": 0,
      "min_id": 7,
      "max_id": 7,
      "bytes": 50,
      "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      "undated": true
    }
  ],
  "rows": 3,
  "rejected": 1,
  "verified": {
    "counted": 4,
    "extracted": 4,
    "match": true
  },
  "requests": {
    "results": 1,
    "count": 2,
    "retries": 0
  }
}
`

func goldenManifest() load.Manifest {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	return load.Manifest{
		Format: "parquet", Pipeline: "feedback", Form: "form1", RunID: "20260201T000000Z-ab12",
		CreatedAt: time.Date(2026, 2, 1, 11, 11, 12, 345, time.FixedZone("", 3600)),
		Range:     load.Range{To: wall("2026-01-03 00:00:00")}, Watermark: wall("2026-01-03 00:00:00"),
		Source: load.Source{Account: "acme", Timezone: "America/Chicago"},
		Schema: []load.Column{
			{Name: "id", Type: "int64", From: "result_id"},
			{
				Name: "item_1", Type: "string", From: "item:1", Label: "Name <first & last>", PII: "truncate(3)", ListAs: "columns",
				Explode: true, Choices: []string{"red"}, ItemType: "checkbox", Index: 7, Gone: true,
			},
		},
		Parts: []load.Part{ // in the order in which windows happened to finish
			{Path: "dt=__HIVE_DEFAULT_PARTITION__/part-undated-000001-0000.parquet", Rows: 1, MinID: 7, MaxID: 7, Bytes: 50, SHA256: empty, Undated: true},
			{Path: "dt=2026-01-02/part-20260102T000000-20260103T000000-000001-0000.parquet", From: wall("2026-01-02 00:00:00"), To: wall("2026-01-03 00:00:00"), Bytes: 10, SHA256: empty},
			{Path: "dt=2026-01-01/part-min-20260102T000000-000001-0000.parquet", To: wall("2026-01-02 00:00:00"), Rows: 2, Rejected: 1, MinID: 5, MaxID: 9, Bytes: 100, SHA256: empty},
		},
		Rows: 3, Rejected: 1,
		Verified: load.Verified{Counted: 4, Extracted: 4, Match: true}, Requests: load.Requests{Results: 1, Count: 2},
	}
}

func TestManifestEncode(t *testing.T) {
	m := goldenManifest()
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != golden {
		t.Errorf("got\n%s\nwant\n%s", data, golden)
	}
	if !m.Parts[0].Undated {
		t.Error("Encode sorted the caller's parts")
	}
	back, err := load.DecodeManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	load.SortParts(m.Parts)
	m.CreatedAt = m.CreatedAt.UTC().Truncate(time.Second)
	if !reflect.DeepEqual(*back, m) {
		t.Errorf("got\n%+v\nwant\n%+v", *back, m)
	}
}

func TestManifestEncodeEmptyAndStrange(t *testing.T) {
	m := load.Manifest{Format: "csv", Form: "a\xffb", RunID: "r", Schema: []load.Column{{Label: "\xfe\u2028"}}, Verified: load.Verified{Reason: "verify: false"}}
	m.Changes = &load.Changes{Method: load.MethodLookback, Reason: "\xff", Witness: "a\xfe", Known: []load.ChangedResult{}, Later: []int64{}}
	first, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"parts": []`, `"watermark": null`, `"reason": "verify: false"`} {
		if !strings.Contains(string(first), want) {
			t.Errorf("%s is not in\n%s", want, first)
		}
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
	second, err := back.Encode()
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second time it is\n%s\nafter\n%s (%v)", second, first, err)
	}
}

func TestDecodeManifestRefuses(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"not JSON", golden, "hello", "cannot be read"},
		{"empty", golden, "", "cannot be read"},
		{"truncated", golden, golden[:len(golden)/2], "cannot be read"},
		{"a list", golden, "[]", "cannot be read"},
		{"something after it", golden, golden + "{}", "there is something after its end"},
		{"another program's", golden, `{"name": "app", "version": 1}`, "has no format"},
		{"no format", `"format": "parquet"`, `"format": ""`, "has no format"},
		{"no run", `"run_id": "20260201T000000Z-ab12"`, `"run_id": ""`, "has no run id"},
		{"parts are null", golden[strings.Index(golden, `"parts": [`):strings.Index(golden, `  "rows": 3`)], `"parts": null,`, "lists no parts"},
		{"a path that leaves", "dt=2026-01-02/", "../", "is not named like a part"},
		{"a path that is absolute", "dt=2026-01-02/", "/", "is not named like a part"},
		{"a path in the control folder", "dt=2026-01-02/", ".formetl/", "is not named like a part"},
		{"a bad checksum", "e3b0c4", "E3B0C4", "has no sha256"},
		{"a short checksum", "e3b0c4", "", "has no sha256"},
		{"negative rows", `"rows": 0`, `"rows": -1`, "negative size"},
		{"negative rejects", `"rejected": 1,
      "min_id"`, `"rejected": -1,
      "min_id"`, "negative size"},
		{"negative bytes", `"bytes": 10,`, `"bytes": -10,`, "negative size"},
		{"rows without ids", `"min_id": 5`, `"min_id": null`, "has rows, but no lowest and highest id"},
		{"a lowest id above the highest", `"min_id": 5`, `"min_id": 50`, "a lowest id above the highest"},
		{"rows that do not add up", `"rows": 3`, `"rows": 4`, "have 3 rows together, but it says 4"},
		{"a date that is none", "2026-01-02 00:00:00", "2026-02-30 00:00:00", "is not a time"},
		{"an instant", "2026-01-02 00:00:00", "2026-01-02T00:00:00Z", "is not a time"},
		{"a number for a time", `"from": "2026-01-02 00:00:00"`, `"from": 7`, "cannot be read"},
		{"a part that ends before it begins", `"from": "2026-01-02 00:00:00"`, `"from": "2027-01-02 00:00:00"`, "ends before"},
		{"an undated part with a window", `"to": null`, `"to": "2026-01-02 00:00:00"`, "without a date, but has dates"},
		{"another window than the name's", `"to": "2026-01-02 00:00:00"`, `"to": "2026-01-02 12:00:00"`, "other dates than its name says"},
		{"undated no more", `"undated"`, `"undatedx"`, "other dates than its name says"},
		{"another method of changes", `"method": "changes"`, `"method": "guess"`, `does not know, "guess"`},
		{"a moment of changes that is none", `"known_to": "2026-01-02 23:59:59"`, `"known_to": "yesterday"`, "is not a time"},
		{"a change with a negative id", `"id": 9`, `"id": -9`, "negative id"},
		{"a later result with a negative id", "12\n", "-12\n", "negative id"},
		{"a part twice", "dt=2026-01-02/part-20260102T000000-20260103T000000-000001", "dt=2026-01-01/part-min-20260102T000000-000001", "twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			whole := golden
			if strings.Contains(test.name, "change") || strings.Contains(test.name, "later") {
				whole = withChanges(changesText)
			}
			text := strings.Replace(whole, test.old, test.new, 1)
			if text == whole {
				t.Fatal("the change changes nothing")
			}
			_, err := load.DecodeManifest([]byte(text))
			var me *load.ManifestError
			if !errors.As(err, &me) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestDecodeManifestSkipsUnknownKeys(t *testing.T) {
	text := strings.Replace(golden, "{", `{"later": {"x": [1]},`, 1)
	if _, err := load.DecodeManifest([]byte(text)); err != nil {
		t.Error(err)
	}
}

func TestReadManifest(t *testing.T) {
	d := newShop(t).d
	_, version, err := load.ReadManifest(t.Context(), d, load.ManifestName)
	if !errors.Is(err, load.ErrNotExist) || version != load.NoVersion {
		t.Errorf("a missing manifest gives %q, %v", version, err)
	}
	if err := d.Put(t.Context(), load.ManifestName, []byte(golden), load.NoVersion); err != nil {
		t.Fatal(err)
	}
	got, version, err := load.ReadManifest(t.Context(), d, load.ManifestName)
	if err != nil || got.Rows != 3 || version == load.NoVersion {
		t.Errorf("got %+v, %q, %v", got, version, err)
	}
	if err := d.Put(t.Context(), "x.csv.manifest.json", []byte("{}"), load.NoVersion); err != nil {
		t.Fatal(err)
	}
	_, _, err = load.ReadManifest(t.Context(), d, "x.csv.manifest.json")
	if err == nil || !strings.HasPrefix(err.Error(), "x.csv.manifest.json is damaged, or not from this version of formetl: ") {
		t.Errorf("got %v", err)
	}
}

func TestWallTakesTheClock(t *testing.T) {
	zone := time.FixedZone("", -6*3600)
	got := load.Wall(time.Date(2026, 3, 8, 2, 30, 0, 999, zone))
	if got.String() != "2026-03-08 02:30:00" || got.Location() != time.UTC {
		t.Errorf("got %s in %s", got, got.Location())
	}
	if none := load.Wall(time.Time{}); !none.IsZero() || none.String() != ".." {
		t.Errorf("no bound is %s", none)
	}
	if _, err := json.Marshal(load.Wall(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))); err == nil {
		t.Error("the year 10000 is written")
	}
}

// What is accepted is written so that it is read as the same again.
func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(golden))
	for _, change := range [][2]string{
		{`"2026-02-01T10:11:12Z"`, `"0000-01-01T00:00:00Z"`},
		{`"2026-02-01T10:11:12Z"`, `"2026-01-01T00:00:00+23:59"`},
		{`"parquet"`, `"\ud800"`},
		{`"watermark": "2026-01-03 00:00:00"`, `"watermark": "0001-01-01 00:00:00"`},
		{"dt=2026-01-02/part-20260102T000000-20260103T000000-000001-0000", "a"},
	} {
		f.Add([]byte(strings.Replace(golden, change[0], change[1], 1)))
	}
	f.Add([]byte(withChanges(changesText)))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := load.DecodeManifest(data)
		if err != nil {
			return
		}
		first, err := m.Encode()
		if err != nil {
			return // a year that JSON cannot hold
		}
		again, err := load.DecodeManifest(first)
		if err != nil {
			t.Fatalf("what was written is refused: %v\n%s", err, first)
		}
		second, err := again.Encode()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("the second time it is\n%s\nafter\n%s (%v)", second, first, err)
		}
	})
}
