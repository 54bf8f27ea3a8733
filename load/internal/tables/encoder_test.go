package tables

import (
	"testing"

	"github.com/formetl/formetl/load/loadtest"
)

func FuzzHeader(f *testing.F) {
	f.Add([]byte(HeaderMark + `{"columns":[{"name":"id","type":"bigint"}],"id":"id"}` + "\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := DecodeHeader(line)
		if err != nil {
			return
		}
		if again, err := DecodeHeader(h.Encode()); err != nil || again.ID != h.ID || len(again.Columns) != len(h.Columns) {
			t.Errorf("%+v becomes %+v, %v", h, again, err)
		}
	})
}

// Names of any kind are quoted so that they name one thing.
func FuzzQuote(f *testing.F) {
	for _, name := range loadtest.HostileNames() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		quoted := Quote(name)
		inner := quoted[1 : len(quoted)-1]
		for i := 0; i < len(inner); i++ {
			if inner[i] != '"' {
				continue
			}
			if i+1 == len(inner) || inner[i+1] != '"' {
				t.Fatalf("%q ends within %s", name, quoted)
			}
			i++
		}
	})
}
