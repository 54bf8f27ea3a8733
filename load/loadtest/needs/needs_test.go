package needs

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goTest runs `go test` on two small packages, with variables besides the usual
// ones. Their notes lie in a folder of their own.
func goTest(t *testing.T, cache, stdout string, env ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "./testdata/some", "./testdata/zz")
	out, err := os.Create(stdout)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // it is read by its name
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	build, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOPATH", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	places := strings.Fields(string(build))
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, Variable+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+cache, "HOME="+cache, "GOCACHE="+places[0], "GOPATH="+places[1], "GOMODCACHE="+places[2])
	cmd.Env = append(cmd.Env, env...)
	err = cmd.Run()
	data, failed := os.ReadFile(stdout)
	if failed != nil {
		t.Fatal(failed)
	}
	return string(data), err
}

// TestSummaryEndsTheOutput holds that the last lines of `go test` say what was left
// out, also where earlier results are shown again, and although all is green.
func TestSummaryEndsTheOutput(t *testing.T) {
	const want = `Not everything was tested; FORMETL_TEST_ALL=1 runs all tests, and fails where a program is missing:
  no-such-program is missing (it cannot be had): 1 test left out, in load/loadtest/needs/testdata/some
  takes long: 1 test left out, 1 test in short, in load/loadtest/needs/testdata/some
`
	cache := t.TempDir()
	stdout := filepath.Join(t.TempDir(), "stdout")
	for round := range 2 {
		out, err := goTest(t, cache, stdout)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		lines := strings.SplitAfter(strings.ReplaceAll(out, strings.Repeat(" ", 119)+"\n", ""), "\n")
		if len(lines) < 5 || strings.Contains(out, "no-such-program") != strings.Contains(out, want) {
			t.Fatalf("round %d ends with\n%s", round, out)
		}
		if end := strings.Join(lines[max(0, len(lines)-6):], ""); sees() && !strings.Contains(end, want) {
			t.Errorf("round %d ends with\n%s", round, end)
		}
		if cached := strings.Contains(out, "testdata/some\t(cached)"); cached != (round == 1) {
			t.Errorf("round %d: an earlier result is shown again: %t\n%s", round, cached, out)
		}
		if strings.Contains(out, "testdata/zz\t(cached)") {
			t.Errorf("round %d: an earlier summary is hidden\n%s", round, out)
		}
	}
}

// sees tells whether this system tells what the go command does.
func sees() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

// TestAllFailsWhereAProgramIsMissing asks for every test.
func TestAllFailsWhereAProgramIsMissing(t *testing.T) {
	out, err := goTest(t, t.TempDir(), filepath.Join(t.TempDir(), "stdout"), Variable+"=1")
	if err == nil || !strings.Contains(out, "no-such-program is missing, and FORMETL_TEST_ALL asks for every test: it cannot be had") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(out, "TestLong") || strings.Contains(out, "Not everything was tested") {
		t.Errorf("something was left out\n%s", out)
	}
}

func TestSpread(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for n, want := range map[int][]int{1: {0}, 2: {0, 9}, 4: {0, 3, 6, 9}, 10: all} {
		if got := spread(all, n); !slices.Equal(got, want) {
			t.Errorf("%d: got %v, want %v", n, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	if got := summary(nil); got != "" {
		t.Errorf("nothing left out gives %q", got)
	}
	got := summary(map[string][]Note{
		"github.com/formetl/formetl/b": {{"TestOne", "x is missing (get x)", true}},
		"github.com/formetl/formetl/a": {{"TestTwo", "x is missing (get x)", true}, {"TestTwo", takesLong, false}},
	})
	if want := "\n  takes long: 1 test in short, in a\n  x is missing (get x): 2 tests left out, in a b\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
}

// TestTogether changes what the command line does not say.
func TestTogether(t *testing.T) {
	parallel := flag.Lookup("test.parallel")
	before := parallel.Value.String()
	t.Cleanup(func() { _ = parallel.Value.Set(before) })
	want := "17"
	flag.Visit(func(f *flag.Flag) {
		if f == parallel {
			want = before // this test was called with -parallel
		}
	})
	if Together(17); parallel.Value.String() != want {
		t.Errorf("%s tests run at once, want %s", parallel.Value, want)
	}
}
