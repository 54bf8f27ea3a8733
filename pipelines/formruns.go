package pipelines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
)

// formRuns runs the forms of a definition side by side. As many forms are open at
// once as requests may be under way, because each form has at least one to send. The forms
// share the slots that bound how many windows are read at once.
type formRuns struct {
	def    *definition.Definition
	o      Options
	client extract.Client
	forms  []string
	clash  map[string]error // errors of forms that would write over each other, by form
	// reports are in the order of forms. A report is nil if its form was not begun because the
	// run of another form panicked.
	reports []*FormReport

	started  atomic.Int64 // number of forms that were begun
	mu       sync.Mutex
	hopeless error // an error that every further form would meet
	panicked string
}

// run runs the forms. Once an error concerns every form, it begins no further one. A panic in
// the run of a form is repeated in the goroutine of the caller.
func (r *formRuns) run(ctx context.Context) {
	r.reports = make([]*FormReport, len(r.forms))
	defer r.tidyState()()
	var group errgroup.Group
	group.SetLimit(cap(r.o.windows))
	for i := range r.forms {
		group.Go(func() error {
			r.one(ctx, i)
			return nil // a form that fails stops no other form
		})
	}
	_ = group.Wait() // the errors of forms are in their reports
	if r.panicked != "" {
		panic(r.panicked)
	}
}

func (r *formRuns) one(ctx context.Context, i int) {
	form, report := r.forms[i], &r.reports[i]
	defer func() {
		if p := recover(); p != nil {
			r.giveUp(nil, fmt.Sprintf("form %s: %v\n%s", form, p, debug.Stack()))
		}
	}()
	r.mu.Lock()
	cause, broken := r.hopeless, r.panicked != ""
	r.mu.Unlock()
	switch {
	case broken:
		return
	case ctx.Err() != nil:
		*report = r.notBegun(form, &NotRunError{Form: form, Stopped: true, Err: context.Cause(ctx)})
	case cause != nil:
		*report = r.notBegun(form, &NotRunError{Form: form, Err: cause})
	case r.clash[form] != nil:
		*report = r.notBegun(form, r.clash[form])
	default:
		r.started.Add(1)
		def, err := r.def.For(form)
		if err != nil {
			*report = r.notBegun(form, err)
		} else {
			*report, err = runForm(ctx, def, r.o, r.client, form)
		}
		if err != nil {
			r.failed(ctx, form, err)
		}
	}
	r.o.Ended(*report)
}

// notBegun returns the report of a form that was not begun, so that nothing was asked or
// written.
func (r *formRuns) notBegun(form string, err error) *FormReport {
	now := r.o.Now().UTC()
	return &FormReport{
		Form: form, StartedAt: now, EndedAt: now, Timezone: r.def.Source.Zone.String(),
		Outputs: []output.Report{}, Error: err.Error(), Err: err,
	}
}

func formFailed(form string, err error) error { return fmt.Errorf("form %s: %w", form, err) }

// failed calls Options.Progress for a form that failed. Where every further form would meet
// the same error, it lets no further form begin.
func (r *formRuns) failed(ctx context.Context, form string, err error) {
	r.o.Progress(Progress{Form: form, Failed: true})
	if !hopeless(err) || ctx.Err() != nil {
		return
	}
	// The log leaves out the error itself, which is told when the form has ended.
	if r.giveUp(err, "") && int(r.started.Load()) < len(r.forms) {
		r.o.Logger.LogAttrs(ctx, slog.LevelWarn, "no further form is started, because the error of this form, which is told when it has ended, would end each", slog.String("form", form))
	}
}

// giveUp lets no further form begin, because of an error or a panic. It returns true the first
// time.
func (r *formRuns) giveUp(err error, panicked string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.hopeless == nil && r.panicked == ""
	if r.hopeless == nil {
		r.hopeless = err
	}
	if r.panicked == "" {
		r.panicked = panicked
	}
	return first
}

// hopeless tells whether an error is about the account or the service, so that
// every further form would meet the same error and spend requests on it. Examples are a
// refused key, an account that is not there, an outage, and an address without a
// service. A used-up budget is not hopeless: it refuses forms before they send a
// request, and a form that only needs its commit still gets it.
func hopeless(err error) bool {
	if s, ok := errors.AsType[*transport.ServiceError](err); ok {
		return s.Code == transport.CodeInvalidKey || s.Code == transport.CodeInvalidUser
	}
	if a, ok := errors.AsType[*transport.AnswerError](err); isError[*transport.OutageError](err) || ok && a.NotService() {
		return true
	}
	n, ok := errors.AsType[*transport.NetworkError](err)
	return ok && n.Final
}

// result puts the forms' reports into the run's report, in the order of the forms, and returns
// the run's error: a *FormsError, or nil.
func (r *formRuns) result(report *Report) error {
	failed := &FormsError{Forms: len(r.forms)}
	for _, form := range r.reports {
		if form == nil {
			continue
		}
		report.Forms = append(report.Forms, form)
		if form.Err != nil {
			failed.Errors = append(failed.Errors, formFailed(form.Form, form.Err))
		}
	}
	return failed.OrNil()
}

// tidyState returns a function that removes the state folder if it did not exist before the
// run and is empty.
func (r *formRuns) tidyState() func() {
	if _, err := os.Stat(r.def.State); r.o.State.Remote() || !errors.Is(err, fs.ErrNotExist) {
		return func() {}
	}
	return func() { _ = os.Remove(r.def.State) } // Remove fails if the folder holds anything, so such a folder stays
}
