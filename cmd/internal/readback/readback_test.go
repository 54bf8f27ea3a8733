package readback

import (
	"testing"
	"time"
)

func layout() Layout {
	return Layout{Zone: time.UTC, Columns: []Column{{Name: "id", Type: "int64"}, {Name: "a", Type: "string"}, {Name: "l", Type: "list<string>"}}}
}

// TestCSV tells null from the empty string, and keeps line ends.
func TestCSV(t *testing.T) {
	rows, err := Read("x.csv", []byte("id,a,l\n1,\"two\r\nlines, \"\"quoted\"\"\",a\\|b|\\N|\n2,,\n3,\"\",\"\"\n"), layout())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Row{
		{"id": Text("1"), "a": Text("two\r\nlines, \"quoted\""), "l": List(Text("a|b"), Cell{}, Text(""))},
		{"id": Text("2")},
		{"id": Text("3"), "a": Text(""), "l": List()},
	} {
		for _, c := range layout().Columns {
			if rows[i][c.Name].String() != want[c.Name].String() {
				t.Errorf("row %d, %s: %s, and should be %s", i+1, c.Name, rows[i][c.Name], want[c.Name])
			}
		}
	}
}

// TestStrict refuses files that are cut, or hold what they should not.
func TestStrict(t *testing.T) {
	for _, c := range []struct{ name, data string }{
		{"x.csv", ""},
		{"x.csv", "id,a,l\n1,x,y"},
		{"x.csv", "id,a,l\n1,x\n"},
		{"x.csv", "id,a,l\n1,x,\"y\n"},
		{"x.csv", "id,l,a\n1,x,y\n"},
		{"x.csv", "id,a,l,more\n1,x,y,z\n"},
		{"x.csv", "id,a,l\r\n1,x,y\r\n"},
		{"x.ndjson", `{"id":1}`},
		{"x.ndjson", `{"id":1,"more":2}` + "\n"},
		{"x.ndjson", `{"id":` + "\n"},
		{"x.json", `[{"id":1}`},
		{"x.json", `[{"id":1}] 5`},
		{"x.csv.gz", "id,a,l\n"},
		{"x.parquet", "PAR1"},
		{"x.arrow", "ARROW1"},
		{"x.txt", ""},
	} {
		if rows, err := Read(c.name, []byte(c.data), layout()); err == nil {
			t.Errorf("%s of %q is read as %v", c.name, c.data, rows)
		}
	}
}

// TestInstant is how a zone's two odd hours are meant.
func TestInstant(t *testing.T) {
	for _, c := range []struct{ zone, wall, want string }{
		{"America/Chicago", "2026-11-01 01:30:00", "2026-11-01T01:30:00-05:00"},
		{"America/Chicago", "2026-03-08 02:30:00", "2026-03-08T03:30:00-05:00"},
		{"Australia/Lord_Howe", "2026-04-05 01:45:00", "2026-04-05T01:45:00+11:00"},
		{"UTC", "2026-03-08 02:30:00", "2026-03-08T02:30:00Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, err := time.Parse(wallLayout, c.wall)
		if err != nil {
			t.Fatal(err)
		}
		if got := Instant(wall, zone).Format(time.RFC3339); got != c.want {
			t.Errorf("%s in %s is %s, and should be %s", c.wall, c.zone, got, c.want)
		}
	}
}
