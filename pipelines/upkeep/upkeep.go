// Package upkeep has the commands for a definition besides running it, such as doctor and verify.
//
// Examine (doctor) checks what a run needs before it runs: the key, the forms, the zone,
// the clocks, the budget, the destinations and the disk. Verify and VerifyPath compare what
// runs wrote with its manifests, and with the service's counts. State tells of watermarks,
// of runs under way or ended early, of checkpoints and of the budget; ResetState sets
// watermarks back. Clean removes what dead runs left. InferSchema proposes a schema file by
// a sample of a form's results, and DiffLive compares columns with the form as it is now.
//
// These functions work form by form and output by output (eachForm, eachOutput): a form or output
// that fails does not stop the others. None of them runs a pipeline, reads all results, or removes
// committed data. What Examine makes at destinations to test them it removes again. All but
// ResetState and Clean change nothing and take no lease. Only the command line imports this
// package.
//
// Each command begins in the file of its name: begin reading with doctor.go, verify.go,
// state.go, clean.go, infer.go or diff.go.
package upkeep

import (
	"context"

	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// eachForm calls visit for the forms that a run of the definition would read, with the definition
// of each, and returns these forms. The service is asked for its list of forms only if the
// definition has globs. A form that fails does not stop the others: failed has its error. err is of
// that list, or of a context that is done.
func eachForm(ctx context.Context, def *definition.Definition, o pipelines.Options, visit func(def *definition.Definition, form string) error) (forms []string, failed *pipelines.FormsError, err error) {
	failed = &pipelines.FormsError{}
	if forms, err = pipelines.ListForms(ctx, def, o); err == nil {
		err = failed.Each(ctx, def, forms, visit)
	}
	return forms, failed, err
}

// eachOutput calls visit for the outputs of a form and where they lie, except standard output. An
// output that fails does not stop the others: the error is an *output.OutputsError then.
func eachOutput(ctx context.Context, def *definition.Definition, o pipelines.Options, form string, visit func(definition.Output, output.Location) error) error {
	var failures []error
	for _, out := range def.Outputs {
		if out.Path == definition.StdoutPath || ctx.Err() != nil {
			continue
		}
		at, err := output.Locate(def, out, form, o.RunID)
		if err == nil {
			err = output.Replaceable(def, visit(out, at))
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	return output.Failed(failures)
}
