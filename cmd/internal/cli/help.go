package cli

import (
	"embed"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/nearest"
)

// topic is a part of the documentation that `formetl help` prints.
type topic struct {
	name, about string
	docs        embed.FS
	file        string
}

// topics are in the order of the README's last table.
func topics() []topic {
	return []topic{
		{"export", "one form as a file", pipelines.Docs, "export.md"},
		{"commands", "all commands, and the environment", pipelines.Docs, "commands.md"},
		{"scheduling", "cron, Airflow, Kubernetes", pipelines.Docs, "scheduling.md"},
		{"incremental", "runs that go on where the last one ended", pipelines.Docs, "incremental.md"},
		{"recovery", "runs that ended early, parts that are gone", pipelines.Docs, "recovery.md"},
		{"exit-codes", "each code, and what a scheduler should do", pipelines.Docs, "exit-codes.md"},
		{"rejects", "results that do not fit their schema", pipelines.Docs, "rejects.md"},
		{"codebook", "what describes the columns", pipelines.Docs, "codebook.md"},
		{"reports", "reports, metrics and logs", pipelines.Docs, "reports.md"},
		{"schemas", "columns, types, lists", schemas.Docs, "README.md"},
		{"drift", "when the form changes", schemas.Docs, "drift.md"},
		{"personal-data", "columns that nobody shall read", schemas.Docs, "personal-data.md"},
		{"warehouse", "SQL that loads a warehouse", schemas.Docs, "warehouse.md"},
		{"formats", "formats, and how to read them", load.Docs, "README.md"},
		{"spreadsheets", "CSV and xlsx for spreadsheets", load.Docs, "spreadsheets.md"},
		{"s3", "S3 and stores like it", load.Docs, "s3.md"},
		{"reading", "windows, pages, requests", extract.Docs, "README.md"},
	}
}

// helpCommand prints the help of a command, or a topic.
func helpCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Help about a command, or a topic of the documentation",
		Example: `  formetl help export
  formetl help recovery
  formetl help schema infer`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				if err := root.Help(); err != nil {
					return err
				}
				rows := show.Rows(nil, topics(), func(t topic) []string { return []string{t.name, t.about} })
				return show.Print(p.stdout, []byte("\nTopics, for formetl help TOPIC:\n"+show.Columns("  ", rows)))
			}
			all := topics()
			if at := slices.IndexFunc(all, func(t topic) bool { return strings.EqualFold(t.name, args[0]) }); at >= 0 && len(args) == 1 {
				text, err := all[at].docs.ReadFile(all[at].file)
				if err != nil {
					return err
				}
				return show.Print(p.stdout, []byte(plain(string(text))))
			}
			if is, rest, err := root.Find(args); err == nil && is != root && len(rest) == 0 {
				return is.Help()
			}
			var names []string
			for _, t := range all {
				names = append(names, t.name)
			}
			for _, c := range root.Commands() {
				names = append(names, c.Name())
			}
			if near := nearest.Word(args[0], names); near != "" {
				return exit.Usagef("there is no command or topic %q; did you mean %s?", strings.Join(args, " "), near)
			}
			return exit.Usagef("there is no command or topic %q; `formetl help` lists them", strings.Join(args, " "))
		},
	}
}

// plain is Markdown for a terminal: links are their text, and a link to another topic
// names it.
func plain(text string) string {
	return regexp.MustCompile(`\[([^\]\n]+)\]\([^)\n]+\)`).ReplaceAllString(text, "$1")
}
