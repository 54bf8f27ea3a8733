package definition

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "5242880": 5 << 20, "5242880B": 5 << 20, "8192KiB": 8 << 20, "8MiB": 8 << 20, "8 MiB": 8 << 20, "5GiB": 5 << 30,
		"8589934591GiB": 8589934591 << 30, "9223372036854775807": 9223372036854775807,
	} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "8 mib", "8MB", "8  MiB", "1.5GiB", "0x10", "8589934592GiB", "9223372036854775808", "1TiB"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"", "8MiB", "5 GiB", "99999999999999999999GiB", "8589934592GiB", "1B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := parseSize(text); n < 0 || !ok && n != 0 {
			t.Errorf("%q gives %d, %v", text, n, ok)
		}
	})
}

// A part size may be plain bytes, and tags may be left empty.
func TestS3Settings(t *testing.T) {
	text := strings.Replace(minimal, "path: out.csv", "path: s3://b/out.csv\n    s3: {part_size: 5242880, tags: , sse: s3}", 1)
	d, err := Parse("p.yaml", []byte(text), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Outputs[0].S3; s == nil || s.PartSize != 5<<20 || s.Tags != nil || s.SSE != "s3" {
		t.Errorf("got %+v", s)
	}
}

// The S3 settings of the documentation are a definition's, and its JSON is JSON.
func TestReadmeS3(t *testing.T) {
	data, err := os.ReadFile("../../load/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	all := string(data)
	section, _, _ := strings.Cut(all, "\n## ")
	head, _, _ := strings.Cut(minimal, "load:")
	for _, m := range regexp.MustCompile("(?s)```(yaml|json)\n(.*?)```").FindAllStringSubmatch(all, -1) {
		if m[1] == "json" {
			if !json.Valid([]byte(m[2])) {
				t.Errorf("no JSON: %s", m[2])
			}
			continue
		}
		if _, err := Parse("p.yaml", []byte(head+m[2]), testOptions()); err != nil {
			t.Error(err)
		}
	}
	settings := regexp.MustCompile("\\| `(.*)`")
	checked := 0
	for line := range strings.Lines(section) {
		m := settings.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		inline := strings.ReplaceAll(strings.Split(m[1], "; its")[0], "`", "")
		text := head + "load:\n  - path: s3://b/x.csv\n    s3: {" + inline + "}\n"
		if _, err := Parse("p.yaml", []byte(text), testOptions()); err != nil {
			t.Errorf("%s: %v", inline, err)
		}
		checked++
	}
	if checked != 4 {
		t.Errorf("%d rows of settings", checked)
	}
}
