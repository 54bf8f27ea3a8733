package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTopicsAreTheDocumentation: the README's last table lists the topics, and each page
// beside a room is one.
func TestTopicsAreTheDocumentation(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(moduleRoot, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| \\[`([a-z0-9-]+)`\\]\\(([^)]+)\\) \\| (.*) \\|$").FindAllStringSubmatch(string(data), -1)
	listed, files, actual := make([]string, 0, len(rows)), make([]string, 0, len(rows)), make([]string, 0, len(topics()))
	for _, m := range rows {
		listed, files = append(listed, m[1]+": "+m[3]), append(files, m[2])
	}
	for _, topic := range topics() {
		actual = append(actual, topic.name+": "+topic.about)
		if text, err := topic.docs.ReadFile(topic.file); err != nil || !bytes.HasPrefix(text, []byte("# ")) {
			t.Errorf("%s: %v", topic.name, err)
		}
	}
	if !slices.Equal(listed, actual) {
		t.Errorf("the README lists %q, the program has %q", listed, actual)
	}
	pages, err := filepath.Glob(filepath.Join(moduleRoot, "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name, _ := filepath.Rel(moduleRoot, page)
		if name := filepath.ToSlash(name); !slices.Contains(files, name) && name != "pipelines/README.md" && name != "cmd/README.md" {
			t.Errorf("%s is no topic", name)
		}
	}
}

// TestLinksLead: each link within the documentation leads to a file, and to a heading.
func TestLinksLead(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(moduleRoot, "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	root, _ := filepath.Glob(filepath.Join(moduleRoot, "*.md")) // the pattern is right
	links := 0
	for _, page := range append(pages, root...) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`).FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))
			}
			text, err := os.ReadFile(to)
			if err != nil {
				if _, err = os.Stat(to); err != nil {
					t.Errorf("%s: %s leads nowhere", page, m[0])
				}
				continue
			}
			if m[2] != "" && !slices.Contains(headings(string(text)), m[2][1:]) {
				t.Errorf("%s: %s has no such heading", page, m[0])
			}
		}
	}
	if links < 40 {
		t.Errorf("only %d links were found", links)
	}
}

// headings are the anchors of a page.
func headings(text string) (anchors []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		anchors = append(anchors, strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return anchors
}
