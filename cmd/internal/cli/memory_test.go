package cli

import (
	"runtime/debug"
	"testing"
)

func TestCollectSooner(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for _, c := range []struct {
		name string
		env  map[string]string
		want int
	}{
		{"nothing said", nil, gcPercent},
		{"empty is nothing", map[string]string{"GOGC": ""}, gcPercent},
		{"GOGC", map[string]string{"GOGC": "100"}, 100},
		{"GOMEMLIMIT", map[string]string{"GOMEMLIMIT": "1GiB"}, 100},
	} {
		debug.SetGCPercent(100)
		collectSooner(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if got := debug.SetGCPercent(100); got != c.want {
			t.Errorf("%s: the collector works at %d %%, not %d", c.name, got, c.want)
		}
	}
}
