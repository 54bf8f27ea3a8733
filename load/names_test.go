package load_test

import (
	"errors"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/load"
)

func TestCheckNameSaysWhy(t *testing.T) {
	for name, want := range map[string]string{
		"":                        "it is empty",
		"/a":                      "it begins with /",
		"a/../b":                  `".." in it could lead out of the output`,
		"./a":                     `"." in it could lead out of the output`,
		"a//b":                    "it has / at its end, or twice in a row",
		"a/":                      "it has / at its end, or twice in a row",
		`a\b`:                     "it contains a backslash",
		"a\tb":                    "it contains a control character",
		"a\x7f":                   "it contains a control character",
		"\xff":                    "it is not valid UTF-8",
		strings.Repeat("a", 256):  "one of the names in it is longer than 255 bytes",
		strings.Repeat("a/", 520): "it is longer than 1024 bytes",
	} {
		err := load.CheckName(name)
		if !errors.Is(err, load.ErrConfig) || !strings.Contains(err.Error(), strconv.Quote(name)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q gives %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"a", "a/b.csv", "..a", "a..", "...", ".hidden", "a b", "ä/日本.csv", "a:b", ".formetl/intent", strings.Repeat("a", 255), strings.Repeat("a/", 511) + "aa"} {
		if err := load.CheckName(name); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckObjectName(t *testing.T) {
	for name, ok := range map[string]bool{
		"a.csv": true, ".formetl": false, ".formetl/x": false, ".formetl-x": true, "a/.formetl/x": true, "..": false,
	} {
		if err := load.CheckObjectName(name); (err == nil) != ok {
			t.Errorf("%s gives %v", name, err)
		}
	}
}

func TestCheckRun(t *testing.T) {
	for run, ok := range map[string]bool{
		"20260101T000000Z-1a2b": true, "run_1.x": true, "1": true,
		"LOCK": true, "locks": true, "lock": false, "lease": false, "lease-1": false, "put-1": false, "intent": false, "staged-X": false, "probe-1": false,
		"": false, "-a": false, ".a": false, "a/b": false, "a b": false, "ä": false, strings.Repeat("a", 256): false,
	} {
		if err := load.CheckRun(run); (err == nil) != ok {
			t.Errorf("%.20q gives %v", run, err)
		}
	}
}

// A name that passes cannot lead out of the folder that it is put in.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"a/b.csv", "../x", "a/../../x", "/abs", `..\x`, "a\x00b", "..", "a/./b", "\u2024\u2024/x", "C:/x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if load.CheckName(name) != nil {
			return
		}
		if path.Clean(name) != name || !filepath.IsLocal(name) || strings.ContainsAny(name, "\\\x00") {
			t.Fatalf("%q passes", name)
		}
		if joined := filepath.Join("/root", name); !strings.HasPrefix(joined, "/root/") || len(joined) != len("/root/")+len(name) {
			t.Fatalf("%q leads to %q", name, joined)
		}
	})
}

func TestErrorsSayWhatFailed(t *testing.T) {
	cause := errors.New("cause")
	for _, test := range []struct {
		err  error
		want string
	}{
		{&load.Error{Kind: load.ErrUnusable, Op: "create", Path: "/out", Remedy: "do this", Err: cause}, "cannot create /out: cause"},
		{&load.Error{Kind: load.ErrFailed, Path: "/out", Err: cause}, "/out: cause"},
	} {
		if test.err.Error() != test.want || !errors.Is(test.err, cause) {
			t.Errorf("got %q, want %q", test.err, test.want)
		}
	}
	held := &load.HeldError{Path: "/out", Holder: load.Holder{
		RunID: "r1", Pipeline: "feedback", Host: "box", PID: 7, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}}
	const want = "run r1 of pipeline feedback (process 7 on box) has been writing to /out since 2026-01-02T03:04:05Z"
	if held.Error() != want {
		t.Errorf("got %q, want %q", held, want)
	}
	if got := (&load.HeldError{Path: "/out"}).Error(); got != "another run is writing to /out" {
		t.Errorf("got %q", got)
	}
}
