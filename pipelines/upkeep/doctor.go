package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/interval"
)

// CheckState is how a check came out.
type CheckState string

// The states of a check.
const (
	OK         CheckState = "ok"
	Warning    CheckState = "warning"     // a run succeeds, and somebody should look all the same
	Failed     CheckState = "failed"      // a run fails, or its data are wrong
	NotChecked CheckState = "not checked" // nothing is known; Detail says why
)

// Check is one entry of the checklist.
type Check struct {
	Name   string     `json:"name"`         // what was checked, such as "key"
	Of     string     `json:"of,omitempty"` // the output or form that it concerns; "" for the definition as a whole
	State  CheckState `json:"state"`
	Detail string     `json:"detail"`         // what was found and what it means, or why nothing was checked
	Cure   string     `json:"cure,omitempty"` // what to do, "" where there is nothing to do
	// Err is the fault, by which the command ends. It is set if State is Failed.
	Err error `json:"-"`
}

// Checklist is the checklist of a definition.
type Checklist struct {
	Pipeline   string
	Definition string
	At         time.Time // when it was made, by this machine's clock
	Checks     []Check
	Requests   int64 // that were sent to the service, repeated ones too
	Honours    *Honours
}

// Err returns a *FaultsError of the checks that failed, nil if there are none.
func (r *Checklist) Err() error {
	failed := slices.DeleteFunc(slices.Clone(r.Checks), func(c Check) bool { return c.State != Failed })
	if len(failed) == 0 {
		return nil
	}
	return &FaultsError{Of: len(r.Checks), Checks: failed}
}

// FaultsError says that checks failed.
type FaultsError struct {
	Of     int     // how many checks there are
	Checks []Check // that failed, at least one
}

// Error names the checks that failed.
func (e *FaultsError) Error() string {
	names := make([]string, len(e.Checks))
	for i, c := range e.Checks {
		if names[i] = c.Name; c.Of != "" {
			names[i] += " of " + c.Of
		}
	}
	return fmt.Sprintf("%d of %d checks failed: %s", len(e.Checks), e.Of, strings.Join(names, ", "))
}

// Unwrap returns the faults.
func (e *FaultsError) Unwrap() []error {
	errs := make([]error, len(e.Checks))
	for i, c := range e.Checks {
		errs[i] = c.Err
	}
	return errs
}

// Hint says what to do next.
func (e *FaultsError) Hint() string {
	return "do what stands under each failed check; then run the same command again"
}

// patience bounds how long one request to the service is tried. A run is more patient.
const patience = 10 * time.Second

// Examine makes all checks of a definition. noKey is why its keys could not be read, nil
// if they were. The error is of a context that is done; faults stand in the report.
func Examine(ctx context.Context, def *definition.Definition, o account.Options, noKey error) (*Checklist, error) {
	o = o.WithDefaults()
	if o.Client.Patience == 0 {
		o.Client.Patience = patience
	}
	report := &Checklist{Pipeline: def.Name, Definition: def.File, At: o.Now()}
	report.Checks = append(report.Checks, definitionCheck(def, o), stateCheck(ctx, def, o))
	asked := askService(ctx, def, o, noKey)
	report.Requests, report.Honours = asked.requests, asked.told
	kept, places := placeChecks(ctx, def, o, asked.forms)
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	report.Checks = slices.Concat(report.Checks, []Check{kept}, asked.checks, places)
	return report, nil
}

// Unreadable returns the report of a definition that cannot be read. Without one there is
// nothing to check.
func Unreadable(file string, err error, now time.Time) *Checklist {
	return &Checklist{Definition: file, At: now, Checks: []Check{{
		Name: "definition", State: Failed, Detail: "it cannot be read as a definition, so nothing else was checked: " + err.Error(),
		Cure: "mend what the message names; `formetl validate` checks a definition without the service", Err: err,
	}}}
}

// definitionCheck tells what a run of the definition would do, and checks its range.
func definitionCheck(def *definition.Definition, o account.Options) Check {
	paths := make([]string, len(def.Outputs))
	for i, out := range def.Outputs {
		paths[i] = out.Path
	}
	c := Check{
		Name: "definition", State: OK,
		Detail: fmt.Sprintf("pipeline %s reads %s, and writes %s", def.Name, strings.Join(def.Forms, ", "), strings.Join(paths, ", ")),
	}
	if _, err := interval.Ask(def, o.Flags(), o.Now()); err != nil {
		c.State, c.Detail, c.Err = Failed, err.Error(), err
		c.Cure = "set extract.from and extract.to to a range that has begun"
	}
	return c
}

// placeChecks checks what runs keep in the state, and the outputs and the disks. forms are
// those of the service, nil if they are not known.
func placeChecks(ctx context.Context, def *definition.Definition, o account.Options, forms []string) (kept Check, places []Check) {
	if len(forms) == 0 {
		forms, _ = account.NamedForms(def, o)
	}
	example := "form" // where no form is known: rights hardly depend on it
	if len(forms) > 0 {
		example = forms[0]
	}
	rights, usable := rightsOf(ctx, def, o, example)
	// What earlier runs left is looked at only where that is possible.
	of := *def
	of.Outputs = usable
	if account.NeedsForms(def, o) {
		o.Forms = forms // the service was asked for them
	}
	state, failed := &StateReport{Definition: def, Now: o.Now()}, errNoForms
	if !account.NeedsForms(def, o) {
		state, failed = State(ctx, &of, o)
	}
	return checkpointCheck(state), slices.Concat(rights, leftChecks(&of, state, failed), spaceChecks(&of, o, state))
}

// errNoForms is why nothing is known of what runs left where all forms stand behind globs.
var errNoForms = errors.New("the service did not list the forms")
