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
		"C:": "colon", "a:stream": "colon", "a\x00b": "control", "a\nb": "control", "a\u0085b": "control", "a\u00a0": "space", "\u3000a": "space",
		"a.": "dot", "\xff": "UTF-8", strings.Repeat("a", 201): "200 bytes",
	} {
		got, err := ExpandPath("/out/{form}.csv", PathValues{Form: name})
		var wrong *Fault
		if !errors.As(err, &wrong) || got != "" || wrong.Code != 78 || !strings.Contains(wrong.Text, reason) || !strings.HasPrefix(wrong.Text, "the form "+Quote(name)) {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
}

func TestPathErrorsSayWhatToDo(t *testing.T) {
	for placeholder, want := range map[string]string{"form": "leave the form out under forms:, or write paths without {form}", "pipeline": "use letters"} {
		if _, err := pathName(placeholder)(".."); !strings.Contains(err.Error(), want) {
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

// TestCheckLocal refuses what a shell would have replaced and what looks like an address, and
// says what to write.
func TestCheckLocal(t *testing.T) {
	for path, want := range map[string]string{
		"~":                   "is not replaced here",
		"~/x/out.csv":         "is not replaced here",
		"~root/x":             "is not replaced here",
		"$HOME/x.csv":         "$HOME is not replaced here: only a shell does that, and not within quotes or after =; write the path in full, or in a definition ${env:NAME}",
		"out/$DAY/x.csv":      "$DAY is not replaced here",
		"${HOME}/x.csv":       "${HOME} is not replaced here: only a shell does that, and not within quotes or after =; write the path in full, or in a definition ${env:NAME}",
		"out/$(date +%F).csv": "$( is not replaced here",
		"out/`date`.csv":      "` is not replaced here",
		`%USERPROFILE%\x.csv`: "%USERPROFILE% is not replaced here: only a shell does that, and not within quotes or after =; write the path in full, or in a definition ${env:NAME}",
		"file:///tmp/x.csv":   "begins with file:/",
		"file:/tmp/x.csv":     "begins with file:/",
		"FILE://x.csv":        "begins with FILE:/",
		"s3:/bucket/x.csv":    "begins with s3:/",
		"s3://bucket/x.csv":   "begins with s3:/",
		"s3:bucket/x.csv":     "begins with s3:",
		"s3a://bucket/x.csv":  "begins with s3a:/",
		"gs://bucket/x.csv":   "begins with gs:/",
		"gs:/bucket/x.csv":    "begins with gs:/",
		"http://host/x.csv":   "begins with http:/",
		"https://host/x.csv":  "begins with https:/",
		"abfs://c@a/x":        "begins with abfs:/",
		"abfss:/c/x":          "begins with abfss:/",
		"sftp://host/x.csv":   "begins with sftp:/",
		"az://c/x":            "begins with az:/",
		"":                    "", "x.csv": "", "./x": "", "../x/": "", "/tmp/x.csv": "", `C:\x.csv`: "", "C:/x.csv": "", "a~b": "", "out/~x": "",
		"cost$.csv": "", "5$": "", "a$1.csv": "", "100%.csv": "", "%Y-%m.csv": "", "2026-01-01T10:00.csv": "", "a:b.csv": "", "out/{form}.csv": "", "-": "", "a b": "", "a//b": "",
	} {
		got := ""
		if err := CheckLocal(path); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestPathsOfADefinition are checked wherever one stands.
func TestPathsOfADefinition(t *testing.T) {
	for _, path := range []string{"~/x.csv", "$HOME/x.csv", "file:/x.csv", "s3:/x/y.csv", "abfs://c/x.csv"} {
		for _, text := range []string{
			strings.Replace(minimal, "out.csv", "'"+path+"'", 1),
			strings.Replace(minimal, "forms:", "state: '"+path+"'\nforms:", 1),
			strings.Replace(minimal, "forms:", "schema: '"+path+"'\nforms:", 1),
		} {
			_, err := Parse("p.yaml", []byte(text), testOptions())
			if wrong, ok := errors.AsType[*Error](err); !ok || len(wrong.Problems) != 1 {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
