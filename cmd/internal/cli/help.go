package cli

import (
	"cmp"
	"context"
	"embed"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// helpCommand returns the command help, which prints the help of a command or a topic.
func helpCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Show help for a command, or a topic of the documentation",
		Example: `  formetl help export
  formetl help recovery
  formetl help schema infer`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				if err := root.Help(); err != nil {
					return err
				}
				rows := console.Rows(nil, topics(), func(t topic) []string { return []string{t.name, t.about} })
				return console.Print(p.stdout, []byte("\nTopics, for formetl help TOPIC (flags of export and init: formetl export --help):\n"+console.Columns("  ", rows)))
			}
			all := topics()
			if at := slices.IndexFunc(all, func(t topic) bool { return strings.EqualFold(t.name, args[0]) }); at >= 0 && len(args) == 1 {
				text, err := all[at].docs.ReadFile(all[at].file)
				if err != nil {
					return err
				}
				// The text of a link to a topic names the topic. Other links lead to files.
				text = regexp.MustCompile(`\[([^\]\n]+)\]\([^)\n]+\.md(#[^)\n]*)?\)`).ReplaceAll(text, []byte("$1"))
				text = regexp.MustCompile(`\[([^\]\n]+)\]\(([^)\n]+)\)`).ReplaceAll(text, []byte("$1 ($2)"))
				return showPage(cmd.Context(), p, string(text))
			}
			if is, rest, err := root.Find(args); err == nil && is != root && len(rest) == 0 {
				return is.Help()
			}
			asked, names := strings.Join(args, " "), []string(nil)
			for _, c := range root.Commands() {
				names = append(names, c.Name())
			}
			for _, t := range all {
				names = append(names, t.name)
			}
			hint := plain.Hint(asked, names)
			about := func(t topic) bool { return strings.Contains(strings.ToLower(t.about), strings.ToLower(asked)) }
			begins := func(name string) bool { return strings.HasPrefix(name, asked) } // forms for form, which many topics are about
			if at := slices.IndexFunc(all, about); at >= 0 && !slices.ContainsFunc(names, begins) {
				hint = "; did you mean " + all[at].name + "?"
			}
			return console.Usagef("no topic or command %q%s", asked, hint)
		},
	}
}

// showPage prints a page of the documentation. A terminal shows it rendered, by the user's pager.
func showPage(ctx context.Context, p *process, text string) error {
	if !console.IsTerminal(p.stdout) {
		return console.Print(p.stdout, []byte(text))
	}
	env := func(name, otherwise string) string {
		value, _ := p.lookup(name)
		return cmp.Or(value, otherwise)
	}
	bold, plain, dumb := "\x1b[1m", "\x1b[0m", env("TERM", "dumb") == "dumb"
	if dumb || env("NO_COLOR", "") != "" {
		bold, plain = "", ""
	}
	text = console.Markdown(text, console.Width(p.stdout), bold, plain)
	pager := strings.Fields(env("PAGER", "less"))
	if program, err := exec.LookPath(pager[0]); err == nil && !dumb {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), program, pager[1:]...) //nolint:gosec // the user's pager
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), "LESS="+env("LESS", "FRX"))
		signal.Ignore(os.Interrupt) // the pager's
		return cmd.Run()
	}
	return console.Print(p.stdout, []byte(text))
}

// commonFlags is the annotation of a command that names the flags which its help shows first.
const commonFlags = "common flags"

// usageTemplate returns cobra's template of the usage of commands, with common flags first.
func usageTemplate(root *cobra.Command) string {
	cobra.AddTemplateFunc("flags", func(cmd *cobra.Command) string {
		common, more := pflag.NewFlagSet("", 0), pflag.NewFlagSet("", 0)
		common.SortFlags = false
		for _, name := range strings.Fields(cmd.Annotations[commonFlags]) {
			common.AddFlag(cmd.Flag(name))
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if common.Lookup(f.Name) == nil {
				more.AddFlag(f)
			}
		})
		if !common.HasFlags() {
			return "Flags:\n" + more.FlagUsages()
		}
		return "Common flags:\n" + common.FlagUsages() + "\nMore flags:\n" + more.FlagUsages()
	})
	return strings.Replace(root.UsageTemplate(), "Flags:\n{{.LocalFlags.FlagUsages |", "{{flags . |", 1)
}

// topic is a part of the documentation that `formetl help` prints.
type topic struct {
	name, about string
	docs        embed.FS
	file        string
}

// topics returns the topics in the order of the README's last table.
func topics() []topic {
	return []topic{
		{"export", "one form as a file", pipelines.Docs, "export.md"},
		{"questions", "common tasks, each with its command", pipelines.Docs, "examples/questions.md"},
		{"init", "a first definition by questions or flags", pipelines.Docs, "init.md"},
		{"definitions", "every key of a definition", pipelines.Docs, "definitions.md"},
		{"api-v2", "the newer API of the service (JSON)", pipelines.Docs, "api-v2.md"},
		{"commands", "all commands, and environment variables", pipelines.Docs, "commands.md"},
		{"scheduling", "cron, systemd, Kubernetes, Airflow, CI", pipelines.Docs, "scheduling.md"},
		{"temporal", "workers on several machines", pipelines.Docs, "temporal.md"},
		{"incremental", "runs that continue where the last one ended", pipelines.Docs, "incremental.md"},
		{"recovery", "runs that ended early, missing parts", pipelines.Docs, "recovery.md"},
		{"exit-codes", "each code, and what a scheduler should do", pipelines.Docs, "exit-codes.md"},
		{"rejects", "results that do not fit their schema", pipelines.Docs, "rejects.md"},
		{"files", "uploaded files", pipelines.Docs, "files.md"},
		{"codebook", "files that describe the columns", pipelines.Docs, "codebook.md"},
		{"reports", "reports, metrics and logs", pipelines.Docs, "reports.md"},
		{"schemas", "columns, types, lists", schemas.Docs, "README.md"},
		{"drift", "when the form changes", schemas.Docs, "drift.md"},
		{"personal-data", "columns that identify people", schemas.Docs, "personal-data.md"},
		{"warehouse", "SQL for the tables of a warehouse", schemas.Docs, "warehouse.md"},
		{"formats", "formats, and how to read them", load.Docs, "README.md"},
		{"spreadsheets", "CSV and xlsx for Excel, LibreOffice", load.Docs, "spreadsheets.md"},
		{"s3", "S3 and stores like it", load.Docs, "s3.md"},
		{"databases", "tables of PostgreSQL", load.Docs, "databases.md"},
		{"reading", "how results are read: windows, pages, requests", extract.Docs, "README.md"},
		{"faq", "doubts and surprises, answered in words", pipelines.Docs, "faq.md"},
		{"glossary", "what formetl's words mean", pipelines.Docs, "glossary.md"},
	}
}
