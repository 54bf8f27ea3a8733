package page

import (
	"encoding/binary"
	"testing"
	"time"
)

// ruledZone is a zone whose file holds a rule and no changes of offset, as the files do that a
// program holds itself.
func ruledZone(t *testing.T, rule string) *time.Location {
	t.Helper()
	head := func(abbreviation uint32) []byte {
		b := append([]byte("TZif2"), make([]byte, 15)...)
		for _, n := range []uint32{0, 0, 0, 0, 1, abbreviation} { // one type, and no transition
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return append(b, 0, 0, 0, 0, 0, 0, 'U', 'T', 'C', 0)
	}
	data := append(head(4), head(4)...)
	zone, err := time.LoadLocationFromTZData("ruled", append(data, "\n"+rule+"\n"...))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// The last days of a leap year come to an end. Go's bounds of a zone's rules stand still there.
func TestEndOfALeapYear(t *testing.T) {
	zone := ruledZone(t, "CST6CDT,M3.2.0,M11.1.0")
	for _, day := range []int{29, 30, 31, 32} {
		for hour := range 24 {
			wall := time.Date(2024, 12, day, hour, 30, 0, 0, time.UTC)
			if r := ReadWall(wall.Unix(), zone); r.Offset != -6*60*60 || r.Skipped {
				t.Fatalf("%v is read as %+v", wall, r)
			}
		}
	}
}
