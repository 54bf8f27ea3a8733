package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/cli"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/duckdb"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// readme is the text of README.md and of all topics of the documentation.
func readme(t *testing.T) string {
	t.Helper()
	topics, err := filepath.Glob(filepath.Join(moduleRoot, "*", "*.md"))
	if err != nil || len(topics) < 15 {
		t.Fatal(topics, err)
	}
	var text strings.Builder
	for _, file := range append([]string{filepath.Join(moduleRoot, "README.md")}, topics...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("\n" + string(data))
	}
	return text.String()
}

// blocks are the fenced blocks of a language.
func blocks(text, language string) []string {
	matches := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1)
	found := make([]string, 0, len(matches))
	for _, m := range matches {
		found = append(found, m[1])
	}
	return found
}

// shown are the formetl commands that a text shows: the lines of its shell
// blocks, and what stands in backquotes with flags or arguments.
func shown(text string) []string {
	var commands []string
	for _, block := range blocks(text, "sh") {
		for line := range strings.Lines(block) {
			commands = append(commands, strings.TrimSpace(strings.Split(line, "#")[0]))
		}
	}
	for _, m := range regexp.MustCompile("`(formetl [^`]*--?[a-z][^`]*)`").FindAllStringSubmatch(text, -1) {
		commands = append(commands, m[1])
	}
	return append(commands, "formetl schema definition")
}

// TestReadmeCommands runs every command that the README shows, against a real
// service in place of the one that its examples name.
func TestReadmeCommands(t *testing.T) {
	needs.Slow(t)
	text := readme(t)
	ci, err := os.ReadFile(filepath.Join(moduleRoot, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(&formservice.Server{Key: "readme-key", Forms: []*formservice.Form{
		formservice.Generate(formservice.GenerateOptions{Directory: "form1", Results: 150}),
		formservice.Generate(formservice.GenerateOptions{Directory: "feedback", Results: 150, From: mustDay("2026-01-01"), To: mustDay("2026-03-01")}),
	}})
	defer service.Close()
	t.Chdir(t.TempDir())
	for _, block := range blocks(text, "yaml") {
		if strings.Contains(block, "name: feedback") {
			here := strings.NewReplacer("https://fs1.example.com", service.URL, "http://127.0.0.1:8420", service.URL).Replace(block)
			for name, text := range map[string]string{"feedback.yaml": here, "key": "readme-key"} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	env := map[string]string{
		"FORMETL_API_KEY": "readme-key", "FORMETL_BASE_URL": service.URL, "FORMETL_ACCOUNT": formservice.DefaultAccount,
		"FORMETL_TIMEZONE": "America/Chicago",
	}
	ran := 0
	for _, command := range shown(text) {
		args := strings.Fields(strings.ReplaceAll(command, "https://fs1.example.com", service.URL))
		switch {
		case len(args) == 0, args[0] == "export":
			continue // a comment; the environment is set above
		case strings.HasPrefix(command, "go test"), strings.HasPrefix(command, "go install"):
			continue // .ci/run calls the first; the second builds what this test runs
		case strings.HasPrefix(command, "formserver"):
			continue // TestFirstHour runs it
		case strings.HasPrefix(command, "go build"):
			if build, _, _ := strings.Cut(command, " -o "); !strings.Contains(string(ci), build+" -o ") {
				t.Errorf(".ci/run does not build as the README shows: %s", command)
			}
			continue
		case strings.HasPrefix(command, "go run ./cmd/formetl"):
			args = append([]string{"formetl"}, args[3:]...)
		}
		if args[0] != "formetl" {
			t.Errorf("the README shows a command that no test runs: %s", command)
			continue
		}
		var stdout, stderr bytes.Buffer
		lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		if code := cli.Main(args[1:], strings.NewReader(""), &stdout, &stderr, lookup); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", command, code, &stdout, &stderr)
		}
		ran++
	}
	if ran < 8 {
		t.Errorf("only %d commands were found in the README", ran)
	}
	for _, file := range []string{"form1.csv", "out/feedback/_manifest.json", "lake/feedback/_manifest.json", "demo/feedback.csv", "feedback.columns.yaml"} {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("the README's commands did not make %s: %v", file, err)
		}
	}
	t.Run("DuckDB", func(t *testing.T) { runSQL(t, blocks(text, "sql")) })
}

// runSQL runs the README's queries over what its commands made.
func runSQL(t *testing.T, queries []string) {
	t.Helper()
	db := duckdb.Open(t, "UTC")
	for _, query := range queries {
		var rows int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM ("+strings.TrimRight(strings.TrimSpace(query), ";")+")").Scan(&rows); err != nil || rows == 0 {
			t.Errorf("%d rows, %v from %s", rows, err, query)
		}
	}
}

func mustDay(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}
