package definition

import (
	"errors"
	"path"
	"strings"
	"testing"
)

func TestExpandPath(t *testing.T) {
	values := PathValues{Form: "form1", Pipeline: "feedback", Account: "acme", RunID: "20260101T000000Z-1"}
	for template, want := range map[string]string{
		"/out/plain.csv":               "/out/plain.csv",
		"/out/{form}.csv":              "/out/form1.csv",
		"s3://b/{account}/{pipeline}/": "s3://b/acme/feedback/",
		"/{form}/{form}-{run_id}":      "/form1/form1-20260101T000000Z-1",
		"/out/{other}.csv":             "/out/{other}.csv",
	} {
		if got, err := ExpandPath(template, values); err != nil || got != want {
			t.Errorf("%s: got %s, %v", template, got, err)
		}
	}
	// A value that looks like a placeholder is not replaced again.
	if got, err := ExpandPath("/{form}", PathValues{Form: "{account}", Account: "acme"}); err != nil || got != "/{account}" {
		t.Errorf("got %s, %v", got, err)
	}
	// Only what occurs is checked.
	if _, err := ExpandPath("/{form}", PathValues{Form: "a", Account: "../x"}); err != nil {
		t.Error(err)
	}
}

func TestExpandPathRefuses(t *testing.T) {
	for name, reason := range map[string]string{
		"": "is empty", "..": "dot", ".": "dot", ".hidden": "dot", "../../etc/passwd": "dot", "a/b": "slash", `a\b`: "slash", "/etc": "slash",
		"C:": "colon", "a:stream": "colon", "a\x00b": "control", "a\nb": "control", "a\u0085b": "control", "a\u00a0": "blank", "\u3000a": "blank",
		"a.": "dot", "\xff": "UTF-8", strings.Repeat("a", 201): "200 bytes",
	} {
		got, err := ExpandPath("/out/{form}.csv", PathValues{Form: name})
		var wrong *PathError
		if !errors.As(err, &wrong) || got != "" || !strings.Contains(wrong.Reason, reason) || wrong.Placeholder != "form" || wrong.Value != name {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
}

func TestPathErrorsSayWhatToDo(t *testing.T) {
	for placeholder, want := range map[string]string{"form": "exclude it, or write a path without {form}", "pipeline": "use letters"} {
		if err := checkPathName(placeholder, ".."); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", placeholder, err)
		}
	}
}

func FuzzExpandPath(f *testing.F) {
	for _, seed := range []string{"form1", "..", "a/../b", `..\x`, "{form}", "\x00", "ä", "a:b", "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, form string) {
		got, err := ExpandPath("/out/{form}/data.csv", PathValues{Form: form})
		if err != nil {
			return
		}
		if path.Clean(got) != got || path.Dir(path.Dir(got)) != "/out" || path.Base(path.Dir(got)) != form {
			t.Errorf("%q leaves its place: %q", form, got)
		}
	})
}

func TestSplitPath(t *testing.T) {
	for path, want := range map[string][2]string{
		"/a/b/c.csv":             {"/a/b", "c.csv"},
		"s3://bucket/c.csv":      {"s3://bucket", "c.csv"},
		"s3://bucket/lake/c.csv": {"s3://bucket/lake", "c.csv"},
		"s3://bucket//c.csv":     {"s3://bucket/", "c.csv"},
	} {
		if root, name := SplitPath(path); root != want[0] || name != want[1] {
			t.Errorf("%s: %s and %s", path, root, name)
		}
	}
}
