package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
)

func schemaCommand(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Write a schema file from a live form, or show a definition's columns",
		Args:  console.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: `  formetl schema infer --form form1 -o form1.schema.yaml
  formetl schema show feedback.yaml
  formetl schema definition > definition.schema.json`,
	}
	cmd.AddCommand(schemaInferCommand(p), schemaShowCommand(p), schemaDefinitionCommand(p), schemaDDLCommand(p), schemaDiffCommand(p))
	return cmd
}

func schemaDefinitionCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:     "definition",
		Short:   "Print the JSON Schema of definitions, for editors",
		Example: `  formetl schema definition > definition.schema.json`,
		Args:    console.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			if err := p.log.Start(slog.LevelWarn); err != nil {
				return err
			}
			return console.Print(p.stdout, pipelines.DefinitionSchema)
		},
	}
}
