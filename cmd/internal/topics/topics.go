// Package topics has the documentation that `formetl help` prints. Each topic is a page
// beside the room that it is about.
//
// Begin reading at All.
package topics

import (
	"embed"
	"regexp"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas"
)

// Topic is a part of the documentation that `formetl help` prints.
type Topic struct {
	Name, About string
	docs        embed.FS
	file        string
}

// All returns the topics in the order of the README's last table.
func All() []Topic {
	return []Topic{
		{"export", "one form as a file", pipelines.Docs, "export.md"},
		{"init", "a first definition by questions or flags", pipelines.Docs, "init.md"},
		{"definitions", "every key of a definition", pipelines.Docs, "definitions.md"},
		{"api-v2", "the JSON generation of the service", pipelines.Docs, "api-v2.md"},
		{"commands", "all commands, and the environment", pipelines.Docs, "commands.md"},
		{"scheduling", "cron, systemd, Kubernetes, Airflow, CI", pipelines.Docs, "scheduling.md"},
		{"temporal", "workers on several machines", pipelines.Docs, "temporal.md"},
		{"incremental", "runs that go on where the last one ended", pipelines.Docs, "incremental.md"},
		{"recovery", "runs that ended early, parts that are gone", pipelines.Docs, "recovery.md"},
		{"exit-codes", "each code, and what a scheduler should do", pipelines.Docs, "exit-codes.md"},
		{"rejects", "results that do not fit their schema", pipelines.Docs, "rejects.md"},
		{"codebook", "what describes the columns", pipelines.Docs, "codebook.md"},
		{"reports", "reports, metrics and logs", pipelines.Docs, "reports.md"},
		{"schemas", "columns, types, lists", schemas.Docs, "README.md"},
		{"drift", "when the form changes", schemas.Docs, "drift.md"},
		{"personal-data", "columns that nobody shall read", schemas.Docs, "personal-data.md"},
		{"warehouse", "SQL for the tables of a warehouse", schemas.Docs, "warehouse.md"},
		{"formats", "formats, and how to read them", load.Docs, "README.md"},
		{"spreadsheets", "CSV and xlsx for spreadsheets", load.Docs, "spreadsheets.md"},
		{"s3", "S3 and stores like it", load.Docs, "s3.md"},
		{"databases", "tables of PostgreSQL", load.Docs, "databases.md"},
		{"reading", "windows, pages, requests", extract.Docs, "README.md"},
	}
}

// Markdown returns the topic's text.
func (t Topic) Markdown() (string, error) {
	text, err := t.docs.ReadFile(t.file)
	return string(text), err
}

// Plain returns Markdown for a terminal: links are their text, and a link to another topic
// names it.
func Plain(text string) string {
	return regexp.MustCompile(`\[([^\]\n]+)\]\([^)\n]+\)`).ReplaceAllString(text, "$1")
}
