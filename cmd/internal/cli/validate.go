package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/pipelines"
)

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate DEFINITION...",
		Short: "Check definitions and their schemas without any network",
		Long: `Validate checks definitions, and the schemas that they name, as a run would
before its first request. A schema file may be given by itself. It needs neither the network nor the API key. Every
problem of every file is shown; the exit code is 78 if there is one.`,
		Example: `  formetl validate feedback.yaml
  formetl validate pipelines/*.yaml
  formetl validate form1.schema.yaml`,
		Args: definitions,
		RunE: func(_ *cobra.Command, args []string) error { return a.validate(args) },
	}
}

func (a *app) validate(files []string) error {
	if _, err := a.begin(levelWarn); err != nil {
		return err
	}
	var failures []error
	for _, file := range files {
		if is, err := pipelines.IsDefinition(file); err == nil && !is {
			if err := a.validateSchema(file); err != nil {
				failures = append(failures, err)
			}
			continue
		}
		defs, err := new(definitionFlags).load(a, []string{file}, withoutSecrets)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if err := a.print([]byte(fmt.Sprintf("%s: ok (%s)\n", file, contents(defs[0])))); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

// validateSchema checks a schema file by itself.
func (a *app) validateSchema(file string) error {
	s, err := pipelines.LoadSchema(file)
	if err != nil {
		return err
	}
	return a.print([]byte(fmt.Sprintf("%s: ok (schema of %s)\n", file, plural(len(s.Columns), "column"))))
}

// contents says what a definition holds: "1 form, 2 outputs".
func contents(def *pipelines.Definition) string {
	names, globs := 0, 0
	for _, f := range def.Forms {
		if pipelines.IsGlob(f) {
			globs++
		} else {
			names++
		}
	}
	var parts []string
	if names > 0 {
		parts = append(parts, plural(names, "form"))
	}
	if globs > 0 {
		parts = append(parts, plural(globs, "pattern")+" of forms")
	}
	return strings.Join(append(parts, plural(len(def.Outputs), "output")), ", ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", thousands(int64(n)), noun)
}
