package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

// The command doctor makes all checks, so that one fault does not hide another. A check that needs
// what another check found missing is NotChecked, and says why. A check that failed carries an
// error, so that doctor ends with the exit code that a run would end with. An examination collects
// the checks: of the service and a form (doctor_service.go), of what the service honours
// (doctor_honours.go), of destinations (doctor_rights.go), of what earlier runs left
// (doctor_state.go), and of clocks, zone and disks.
//
// Nothing that doctor makes stays: it writes small objects to the control folder of a destination
// and removes them again. Only its requests to the service stay booked in the budget. It sends few:
// Get Forms, a count for a form that Get Forms does not list, and what an inquiry asks of one form;
// see MostRequests.

// CheckState is how a check of doctor came out.
type CheckState string

// How a check of doctor can come out.
const (
	OK         CheckState = "ok"
	Warning    CheckState = "warning"     // a run would succeed, but what was found needs a look
	Failed     CheckState = "failed"      // a run would fail, or its data would be wrong
	NotChecked CheckState = "not checked" // the check could not be made; Check.Detail says why
)

// Check is one entry of doctor's checklist.
type Check struct {
	Name   string     `json:"name"`         // what was checked, such as "key"
	Of     string     `json:"of,omitempty"` // output or form that was checked; "" for the definition
	State  CheckState `json:"state"`
	Detail string     `json:"detail"`         // what was found, or why nothing was checked
	Cure   string     `json:"cure,omitempty"` // what to do about it, "" if there is nothing to do
	// Err is the error of a check whose State is Failed, else nil. It gives doctor its exit code.
	Err error `json:"-"`
}

// failed makes a Check that found an error. If cure is "", the check gets the cure that the error
// of a destination names.
func failed(name, of string, err error, cure string) Check {
	what := err.Error()
	if cure == "" {
		what, cure, _ = cureOf(err)
	}
	return Check{Name: name, Of: of, State: Failed, Detail: what, Cure: cure, Err: err}
}

// Checklist is what doctor found out about a definition.
type Checklist struct {
	Pipeline   string    `json:"pipeline,omitempty"` // left out if the definition cannot be read
	Definition string    `json:"definition"`
	At         time.Time `json:"at"`       // when the checks were made, by this machine's clock
	Requests   int64     `json:"requests"` // requests that were sent to the service, repeated ones too
	Checks     []Check   `json:"checks"`
	Honours    *Honours  `json:"honours,omitempty"` // nil if the service was not asked what it honours
}

// Err returns a *definition.Fault that names the checks that failed and wraps their errors, nil
// if no check failed.
func (l *Checklist) Err() error {
	var names []string
	var faults []error
	for _, c := range l.Checks {
		if c.State == Failed {
			names, faults = append(names, strings.TrimSuffix(c.Name+" of "+c.Of, " of ")), append(faults, c.Err)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &definition.Fault{
		Text: fmt.Sprintf("%d of %d checks failed: %s", len(faults), len(l.Checks), strings.Join(names, ", ")),
		Cure: "do what is written under each failed check; then run the same command again",
		Err:  errors.Join(faults...),
	}
}

// Unreadable returns the checklist of a definition file that cannot be read, with err as its only
// failed check: without a definition nothing else can be checked.
func Unreadable(file string, err error, now time.Time) *Checklist {
	c := failed("definition", "", err, "fix the path or the file, as the message says; `formetl validate DEFINITION` checks a definition without the service")
	c.Detail = "nothing else was checked, because the definition is not valid: " + c.Detail
	return &Checklist{Definition: file, At: now, Checks: []Check{c}}
}

// patience is how long doctor tries one request to the service. A run tries longer.
const patience = 10 * time.Second

// Examine makes all checks of doctor for a definition. noKey is the error of reading the
// definition's keys, nil if they could be read. Examine returns an error only if the context is
// done; what is wrong otherwise stands in the checklist.
func Examine(ctx context.Context, def *definition.Definition, o pipelines.Options, noKey error) (*Checklist, error) {
	o = o.WithDefaults()
	o.Client.Patience = cmp.Or(o.Client.Patience, patience)
	e := &examination{Checklist: &Checklist{Pipeline: def.Name, Definition: def.File, At: o.Now()}, def: def, o: o}
	e.definition()
	e.stateFolder(ctx)
	before := len(e.Checks)
	e.askService(ctx, noKey)

	forms := e.forms
	if len(forms) == 0 {
		forms, _ = pipelines.NamedForms(def, o)
	}
	example := "form" // stands in paths if no form is known: rights hardly depend on the form
	if len(forms) > 0 {
		example = forms[0]
	}
	for _, form := range forms {
		if _, err := def.For(form); err != nil {
			e.add(failed("schema", form, err, "correct what the message names, or else write or fix the schema file"))
		}
	}
	usable := *def
	usable.Outputs = e.rights(ctx, example)
	if pipelines.NeedsForms(def, o) {
		o.Forms = forms // so that State does not ask the service for the list of forms again
	}
	// What earlier runs left can only be looked at if the forms, and so the paths, are known.
	state := &StateReport{Definition: def, Now: o.Now()}
	if pipelines.NeedsForms(def, o) {
		e.skip("the service did not list the forms", "runs")
	} else {
		var err error
		state, err = State(ctx, &usable, o)
		e.leftovers(ctx, &usable, state)
		if err != nil && len(state.Forms) == 0 {
			e.skip(strings.ReplaceAll(err.Error(), "\n", "; "), "runs")
		}
	}
	e.space(state)
	e.Checks = slices.Insert(e.Checks, before, checkpointCheck(state))
	if ctx.Err() != nil {
		return e.Checklist, context.Cause(ctx)
	}
	return e.Checklist, nil
}

// examination makes doctor's checks of one definition, and collects them in its Checklist.
type examination struct {
	*Checklist
	def    *definition.Definition
	o      pipelines.Options
	client extract.Client  // nil if the service cannot be asked
	forms  []string        // forms that a run would read; nil if they are not known
	gone   map[string]bool // forms that the service does not know
	made   []string        // local folders that probes will make, to be removed afterwards
}

func (e *examination) add(c Check) { e.Checks = append(e.Checks, c) }

// ok adds a check that found nothing wrong to the checklist.
func (e *examination) ok(name, detail string) {
	e.add(Check{Name: name, State: OK, Detail: detail})
}

// skip adds checks of the given names as NotChecked, except those that the checklist has already.
func (e *examination) skip(why string, names ...string) {
	for _, name := range names {
		if !slices.ContainsFunc(e.Checks, func(c Check) bool { return c.Name == name }) {
			e.add(Check{Name: name, State: NotChecked, Detail: why})
		}
	}
}

// definition adds a check that tells what a run of the definition would read and write. It fails
// if the range of the run is empty.
func (e *examination) definition() {
	if _, err := reading.NewInterval(e.def, e.o.Flags(e.def), e.o.Now()); err != nil {
		e.add(failed("definition", "", err, "set extract.from and extract.to to a range that has already begun"))
		return
	}
	paths := make([]string, len(e.def.Outputs))
	for i, out := range e.def.Outputs {
		paths[i] = out.Path
	}
	e.ok("definition", fmt.Sprintf("pipeline %s reads %s, and writes %s", e.def.Name, strings.Join(e.def.Forms, ", "), strings.Join(paths, ", ")))
}
