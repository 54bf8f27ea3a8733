package definition

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

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
