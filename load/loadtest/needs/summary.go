package needs

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Tell prints what the tests of this tree left out, when all other test programs
// of this `go test` have ended. It is for the package that is reported last.
//
// `go test` hides what a package prints that passes. So the summary goes to the
// standard output of the go command itself, unless -v shows it anyway.
func Tell(t testing.TB) {
	t.Helper()
	if All() {
		return
	}
	until := time.Now().Add(9 * time.Minute) // go test ends a program after ten
	if deadline, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if at, there := deadline.Deadline(); there {
			until = at.Add(-10 * time.Second)
		}
	}
	ended := waitForOthers(until)
	all, err := leftOut()
	if err != nil {
		t.Fatal(err)
	}
	text := summary(all)
	if !ended {
		text += "Some tests had not ended yet, and may have left out more.\n"
	}
	if text == "" {
		return
	}
	w, done := io.Writer(os.Stdout), func() {}
	if !testing.Verbose() {
		w, done = commandOutput()
	}
	defer done()
	if _, err := io.WriteString(w, text); err != nil {
		t.Errorf("the summary cannot be printed: %v\n%s", err, text)
	}
	forgetResult()
}

// forgetResult keeps `go test` from showing this result again later, when the
// notes are others: without the list of what a test read, none is kept.
func forgetResult() {
	if f := flag.Lookup("test.testlogfile"); f != nil && f.Value.String() != "" {
		_ = os.Remove(f.Value.String()) // or the summary comes with the next change only
	}
}

// summary says what was left out, a line for each reason.
func summary(all map[string][]Note) string {
	type reason struct {
		left, short int
		packages    []string
	}
	reasons := map[string]*reason{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, n := range all[name] {
			r := reasons[n.What]
			if r == nil {
				r = &reason{}
				reasons[n.What] = r
			}
			if n.Whole {
				r.left++
			} else {
				r.short++
			}
			if short := shortName(name); !slices.Contains(r.packages, short) {
				r.packages = append(r.packages, short)
			}
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nNot everything was tested; %s=1 runs all tests, and fails where a program is missing:\n", Variable)
	for _, what := range slices.Sorted(maps.Keys(reasons)) {
		r := reasons[what]
		var count []string
		if r.left > 0 {
			count = append(count, fmt.Sprintf("%s left out", tests(r.left)))
		}
		if r.short > 0 {
			count = append(count, fmt.Sprintf("%s in short", tests(r.short)))
		}
		fmt.Fprintf(&b, "  %s: %s, in %s\n", what, strings.Join(count, ", "), strings.Join(r.packages, " "))
	}
	return b.String()
}

func tests(n int) string {
	if n == 1 {
		return "1 test"
	}
	return fmt.Sprint(n, " tests")
}

// shortName is a package's path within the module.
func shortName(name string) string { return strings.TrimPrefix(name, "github.com/formetl/formetl/") }
