package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/cmd/internal/topics"
	"github.com/formetl/formetl/schemas/nearest"
)

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
				rows := show.Rows(nil, topics.All(), func(t topics.Topic) []string { return []string{t.Name, t.About} })
				return show.Print(p.stdout, []byte("\nTopics, for formetl help TOPIC:\n"+show.Columns("  ", rows)))
			}
			all := topics.All()
			if at := slices.IndexFunc(all, func(t topics.Topic) bool { return strings.EqualFold(t.Name, args[0]) }); at >= 0 && len(args) == 1 {
				text, err := all[at].Markdown()
				if err != nil {
					return err
				}
				return show.Print(p.stdout, []byte(topics.Plain(text)))
			}
			if is, rest, err := root.Find(args); err == nil && is != root && len(rest) == 0 {
				return is.Help()
			}
			var names []string
			for _, t := range all {
				names = append(names, t.Name)
			}
			for _, c := range root.Commands() {
				names = append(names, c.Name())
			}
			hint := cmp.Or(nearest.Hint(args[0], names), "; `formetl help` lists them")
			return exit.Usagef("there is no command or topic %q%s", strings.Join(args, " "), hint)
		},
	}
}
