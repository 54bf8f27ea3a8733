package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/formetl/formetl/pipelines/definition"
)

func (a *app) validateCommand() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "validate DEFINITION...",
		Short: "Check definitions and their schemas without any network",
		Long: `Validate checks definitions, and the schemas that they name, as a run would
before its first request. A schema file may be given by itself. It needs neither
the network nor the API key: a variable that is not set, or a key file that
cannot be read, is a warning, as it may be there where the job runs. Every
problem of every file is shown; the exit code is 78 if there is one, with
--strict also if there is a warning.`,
		Example: `  formetl validate feedback.yaml
  formetl validate pipelines/*.yaml
  formetl validate feedback.yaml --strict
  formetl validate form1.schema.yaml`,
		Args: definitions,
		RunE: func(_ *cobra.Command, args []string) error { return a.validate(args, strict) },
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "a key that is not there, where a run would need it, is a problem and no warning")
	return cmd
}

func (a *app) validate(files []string, strict bool) error {
	if _, err := a.begin(levelWarn); err != nil {
		return err
	}
	var failures []error
	for _, file := range files {
		check := a.checkDefinition
		if is, err := definition.Is(file); err == nil && !is {
			check = a.checkSchema
		}
		found, lacking, err := check(file)
		switch {
		case err != nil:
			failures = append(failures, err)
			continue
		case lacking != nil && strict:
			failures = append(failures, lacking)
			continue
		case lacking != nil:
			text := "\n" + strings.TrimRight(explain(lacking), "\n")
			a.logs.tell(levelWarn, strings.ReplaceAll(text, "\n"+file+":", "\nwarning: "+file+":")[1:])
		}
		if err := a.print([]byte(fmt.Sprintf("%s: ok (%s)\n", file, found))); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

// checkDefinition checks a definition. found says what it holds, lacking which
// keys a run would need that are not there.
func (a *app) checkDefinition(file string) (found string, lacking, err error) {
	defs, err := new(definitionFlags).load(a, []string{file}, withoutSecrets)
	if err != nil {
		return "", nil, err
	}
	_, lacking = new(definitionFlags).load(a, []string{file}, withSecrets)
	return contents(defs[0]), lacking, nil
}

// checkSchema checks a schema file by itself, as checkDefinition does.
func (a *app) checkSchema(file string) (found string, lacking, err error) {
	s, err := definition.LoadSchema(file)
	if err != nil {
		return "", nil, err
	}
	_, lacking = definition.LoadSchemaWithKey(file, a.lookup)
	return "schema of " + plural(len(s.Columns), "column"), lacking, nil
}

// contents says what a definition holds: "1 form, 2 outputs".
func contents(def *definition.Definition) string {
	names, globs := 0, 0
	for _, f := range def.Forms {
		if definition.IsGlob(f) {
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
