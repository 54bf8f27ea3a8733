package load_test

import (
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

func TestPartName(t *testing.T) {
	from := time.Date(2026, 1, 15, 6, 0, 0, 0, time.UTC)
	to := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		key  load.PartKey
		want string
	}{
		{load.PartKey{DT: "2026-01-15", From: from, To: to, Generation: 1, Extension: ".parquet"}, "dt=2026-01-15/part-20260115T060000-20260201T000000-000001-0000.parquet"},
		{load.PartKey{From: from, To: to, Generation: 12, N: 3, Extension: ".csv.gz"}, "part-20260115T060000-20260201T000000-000012-0003.csv.gz"},
		{load.PartKey{To: to, Generation: 1, Extension: ".ndjson"}, "part-min-20260201T000000-000001-0000.ndjson"},
		{load.PartKey{From: from, Generation: 1, Extension: ".ndjson"}, "part-20260115T060000-max-000001-0000.ndjson"},
		{load.PartKey{Generation: 1234567, N: 12345, Extension: ".csv"}, "part-min-max-1234567-12345.csv"},
		{load.PartKey{DT: load.HiveDefaultPartition, Undated: true, Generation: 2, Extension: ".parquet"}, "dt=__HIVE_DEFAULT_PARTITION__/part-undated-000002-0000.parquet"},
		{load.PartKey{Undated: true, Generation: 2, Extension: ".csv.zst"}, "part-undated-000002-0000.csv.zst"},
	} {
		got := load.PartName(test.key)
		if got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
		if err := load.CheckObjectName(got); err != nil || strings.Contains(got, ":") {
			t.Errorf("%s is no name: %v", got, err)
		}
		back, err := load.ParsePartName(got)
		if err != nil || back != test.key {
			t.Errorf("%s is read as %+v, %v", got, back, err)
		}
	}
}

func TestDTValue(t *testing.T) {
	at := func(month time.Month, day, hour int) time.Time {
		return time.Date(2026, month, day, hour, 0, 0, 0, time.UTC)
	}
	for _, test := range []struct {
		partition string
		to        time.Time
		want      string
	}{
		{"", at(1, 3, 0), ""},
		{"none", at(1, 3, 0), ""},
		{"day", at(1, 2, 9), "2026-01-02"},
		{"month", at(6, 1, 0), "2026-05-01"},
		{"year", at(6, 1, 0), "2026-01-01"},
		{"day", at(5, 3, 0), "2026-05-02"}, // a window may end with its partition
		{"month", at(5, 1, 0), "2026-04-01"},
		{"year", at(1, 1, 0), "2025-01-01"},
		{"", time.Time{}, ""},
		{"none", time.Time{}, ""},
		{"day", time.Time{}, load.HiveDefaultPartition},
		{"year", time.Time{}, load.HiveDefaultPartition},
	} {
		if got := load.DTValue(test.partition, test.to); got != test.want {
			t.Errorf("%s to %s: got %s, want %s", test.partition, test.to, got, test.want)
		}
	}
}

func TestParsePartNameRefuses(t *testing.T) {
	for _, name := range []string{
		"", "part", "part-", "_manifest.json", "_SUCCESS", "form1.csv",
		"part-20260101T000000-20260102T000000-000001-0000", // no extension
		"part-20260101T000000-20260102T000000-000001-0000.",
		"part-20260101T000000-20260102T000000-000001-0000.CSV",
		"part-20260101T000000-20260102T000000-1-0.csv",           // not padded
		"part-20260101T000000-20260102T000000-0000001-0000.csv",  // padded too far
		"part-20260101T000000-20260102T000000-+00001-0000.csv",   // no plain number
		"part-20260101T000000-20260102T000000-000001.csv",        // no n
		"part-20260101-20260102-000001-0000.csv",                 // no time
		"part-20260230T000000-20260301T000000-000001-0000.csv",   // no such day
		"part-00010101T000000-20260301T000000-000001-0000.csv",   // the zero time is spelled min
		"part-max-20260102T000000-000001-0000.csv",               // the wrong spelling
		"part-undated-20260102T000000-000001-0000.csv",           // undated has no window
		"dt=2026-1-1/part-undated-000001-0000.csv",               // a short date
		"dt=2026-02-30/part-undated-000001-0000.csv",             // no such day
		"dt=/part-undated-000001-0000.csv",                       // no value
		"day=2026-01-01/part-undated-000001-0000.csv",            // another key
		"dt=2026-01-01/x/part-undated-000001-0000.csv",           // too deep
		"../part-undated-000001-0000.csv",                        // leaves
		"part-min-max-99999999999999999999-0000.csv",             // no int
		"part-min-max-000001-0000.csv/x",                         // a folder
		"part-20260101T000000-20260102T000000-000001-0000.csv\n", // a tail
	} {
		if k, err := load.ParsePartName(name); err == nil {
			t.Errorf("%q is read as %+v", name, k)
		} else if !strings.Contains(err.Error(), "it should look like dt=") {
			t.Errorf("%q gives %v", name, err)
		}
	}
}

func TestNextGeneration(t *testing.T) {
	m := &load.Manifest{Parts: []load.Part{{Path: "part-min-max-000007-0000.csv"}, {Path: "part-min-max-000003-0000.csv"}, {Path: "form1.csv"}}}
	emptied := &load.Manifest{Generation: 9}
	for _, c := range []struct {
		m        *load.Manifest
		unlisted []load.Object
		want     int
	}{{nil, nil, 1}, {m, nil, 8}, {m, []load.Object{{Name: "part-min-max-000011-0000.csv"}}, 12}, {emptied, nil, 10}} {
		if got := load.NextGeneration(c.m, c.unlisted); got != c.want {
			t.Errorf("got %d, want %d", got, c.want)
		}
	}
}

func FuzzPartName(f *testing.F) {
	f.Add("dt=2026-01-15/part-20260115T060000-20260201T000000-000001-0000.parquet")
	f.Add("dt=__HIVE_DEFAULT_PARTITION__/part-undated-000002-0000.csv.gz")
	f.Add("part-min-max-1234567-12345.csv")
	f.Add("part-20260101T000000.5-20260102T000000-000001-0000.csv")
	f.Add("../part-undated-000001-0000.csv")
	f.Fuzz(func(t *testing.T, name string) {
		k, err := load.ParsePartName(name)
		if err != nil {
			return
		}
		if got := load.PartName(k); got != name {
			t.Fatalf("%q is read as %+v and written as %q", name, k, got)
		}
		if strings.ContainsAny(name, ":\\") || load.CheckObjectName(name) != nil && len(name) < 200 {
			t.Fatalf("%q is no name of an object", name)
		}
	})
}
