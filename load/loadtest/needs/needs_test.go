package needs

import (
	"cmp"
	"slices"
	"testing"
)

// ending notes how a test ends first.
type ending struct {
	testing.TB
	how string
}

func (e *ending) Helper()               {}
func (e *ending) Skip(...any)           { e.how = cmp.Or(e.how, "skipped") }
func (e *ending) Skipf(string, ...any)  { e.how = cmp.Or(e.how, "skipped") }
func (e *ending) Fatalf(string, ...any) { e.how = cmp.Or(e.how, "failed") }

// TestWhatIsAskedFor: nothing but Go is needed, unless a variable asks for programs or for
// every test.
func TestWhatIsAskedFor(t *testing.T) {
	for _, c := range []struct{ programs, all, missing, slow, long string }{
		{"", "", "skipped", "skipped", "skipped"},
		{"1", "", "failed", "", "skipped"},
		{"", "1", "failed", "", ""},
	} {
		t.Setenv(ProgramsVariable, c.programs)
		t.Setenv(allVariable, c.all)
		missing, slow, long := &ending{TB: t}, &ending{TB: t}, &ending{TB: t}
		Program(missing, "no-such-program", "it cannot be had")
		Slow(slow)
		Long(long)
		if missing.how != c.missing || slow.how != c.slow || long.how != c.long {
			t.Errorf("%+v: a missing program gives %q, a slow test %q, a long one %q", c, missing.how, slow.how, long.how)
		}
	}
}

func TestSample(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	t.Setenv(allVariable, "")
	for n, want := range map[int][]int{1: {0}, 2: {0, 9}, 4: {0, 3, 6, 9}, 10: all, 11: all} {
		if got := Sample(all, n); !slices.Equal(got, want) {
			t.Errorf("%d: got %v, want %v", n, got, want)
		}
	}
	t.Setenv(allVariable, "1")
	if got := Sample(all, 1); !slices.Equal(got, all) {
		t.Errorf("all: got %v", got)
	}
}
