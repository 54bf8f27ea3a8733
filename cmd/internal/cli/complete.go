package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// completeDefinitions lets shells complete definitions by their extension.
func completeDefinitions(commands []*cobra.Command) {
	for _, cmd := range commands {
		completeDefinitions(cmd.Commands())
		if strings.Contains(cmd.Use, "DEFINITION") {
			cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			}
		}
	}
}
