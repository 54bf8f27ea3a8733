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

// Doctor makes all checks, so that one fault does not hide another; a check that needs what
// another one found missing is NotChecked and says why. A check that failed carries an error,
// so that doctor ends with the exit code of a run. An examination collects the checks: of the
// service and a form (doctor_service), of what the service honours (doctor_honours), of places
// (doctor_rights), of what earlier runs left (doctor_state), of clocks, zone and disks.
//
// Nothing that is made stays: small objects are written to the control folder of a destination
// and removed again. Only the requests stay booked in the budget. Few are sent: Get Forms, for
// a form that is not listed a count, and those that an inquiry asks of one form; see
// MostRequests.

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

// failed is a check that found a fault. Without a cure it has the one that a destination's
// error says.
func failed(name, of string, err error, cure string) Check {
	what := err.Error()
	if cure == "" {
		what, cure, _ = cureOf(err)
	}
	return Check{Name: name, Of: of, State: Failed, Detail: what, Cure: cure, Err: err}
}

// Checklist is what doctor found out about a definition.
type Checklist struct {
	Pipeline   string    `json:"pipeline,omitempty"` // left out where the definition cannot be read
	Definition string    `json:"definition"`
	At         time.Time `json:"at"`       // when it was made, by this machine's clock
	Requests   int64     `json:"requests"` // that were sent to the service, repeated ones too
	Checks     []Check   `json:"checks"`
	Honours    *Honours  `json:"honours,omitempty"` // nil where the service was not asked
}

// Err names the checks that failed, and wraps their faults. It is nil if there are none.
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
		Cure: "do what stands under each failed check; then run the same command again",
		Err:  errors.Join(faults...),
	}
}

// Unreadable returns the checklist of a definition that cannot be read. Without one there is
// nothing to check.
func Unreadable(file string, err error, now time.Time) *Checklist {
	c := failed("definition", "", err, "mend what the message names; `formetl validate` checks a definition without the service")
	c.Detail = "it cannot be read as a definition, so nothing else was checked: " + c.Detail
	return &Checklist{Definition: file, At: now, Checks: []Check{c}}
}

// patience bounds how long one request to the service is tried. A run is more patient.
const patience = 10 * time.Second

// Examine makes all checks of a definition. noKey is why its keys could not be read, nil
// if they were. The error is of a context that is done; faults stand in the checklist.
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
	example := "form" // where no form is known: rights hardly depend on it
	if len(forms) > 0 {
		example = forms[0]
	}
	usable := *def
	usable.Outputs = e.rights(ctx, example)
	if pipelines.NeedsForms(def, o) {
		o.Forms = forms // the service was asked for them
	}
	// What earlier runs left is looked at only where that is possible.
	state := &StateReport{Definition: def, Now: o.Now()}
	if pipelines.NeedsForms(def, o) {
		e.skip("the service did not list the forms", "runs")
	} else {
		var err error
		state, err = State(ctx, &usable, o)
		e.leftovers(state)
		if err != nil && len(state.Forms) == 0 {
			e.skip(err.Error(), "runs")
		}
	}
	e.space(state)
	e.Checks = slices.Insert(e.Checks, before, checkpointCheck(state))
	if ctx.Err() != nil {
		return e.Checklist, context.Cause(ctx)
	}
	return e.Checklist, nil
}

// examination makes the checks of one definition.
type examination struct {
	*Checklist
	def    *definition.Definition
	o      pipelines.Options
	client extract.Client  // nil where the service cannot be asked
	forms  []string        // that a run would read; nil if they are not known
	gone   map[string]bool // forms that the service does not know
	made   []string        // folders that probes make
}

func (e *examination) add(c Check) { e.Checks = append(e.Checks, c) }

// ok adds a check that found nothing wrong.
func (e *examination) ok(name, detail string) {
	e.add(Check{Name: name, State: OK, Detail: detail})
}

// skip adds checks that were not made, unless they were before.
func (e *examination) skip(why string, names ...string) {
	for _, name := range names {
		if !slices.ContainsFunc(e.Checks, func(c Check) bool { return c.Name == name }) {
			e.add(Check{Name: name, State: NotChecked, Detail: why})
		}
	}
}

// definition tells what a run of the definition would do, and checks its range.
func (e *examination) definition() {
	if _, err := reading.NewInterval(e.def, e.o.Flags(), e.o.Now()); err != nil {
		e.add(failed("definition", "", err, "set extract.from and extract.to to a range that has begun"))
		return
	}
	paths := make([]string, len(e.def.Outputs))
	for i, out := range e.def.Outputs {
		paths[i] = out.Path
	}
	e.ok("definition", fmt.Sprintf("pipeline %s reads %s, and writes %s", e.def.Name, strings.Join(e.def.Forms, ", "), strings.Join(paths, ", ")))
}
