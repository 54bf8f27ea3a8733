package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
)

// Processes of several machines may do the run of a form together: the activities of a
// workflow. PlanForm opens, decides and plans, ReadGroup reads a group of the plan's
// windows into the checkpoint at the destination, and FinishForm reconciles, stages and
// commits. Several ReadGroup may be under way at once. Nothing but the checkpoint and
// the lease of the destination passes between them, so each may be tried again anywhere.
//
// There is no second implementation of a run. PlanForm is a run that stops when others
// can go on, and FinishForm is one that resumes from what they left.

// Shared says how the processes of a form's run find each other.
type Shared struct {
	// Owner is whom the leases of the outputs belong to: the workflow's id.
	Owner string
	// Run is the id of the whole run. Each try of each process has an id of its own, which
	// begins with this one.
	Run string
	Try int // the number of this try of this process, from 1
	// Decided is the instant at which the run decides what it reads. It is the same for
	// all its processes.
	Decided time.Time
	// Spent are the requests that earlier processes of the run have sent.
	Spent load.Requests
	// GroupRequests is about how many requests one ReadGroup sends. 0 means 100.
	GroupRequests int

	step step
}

// step is what a process does of a shared run.
type step int

const (
	stepFinish step = iota
	stepPlan
	stepRead
)

// SharedPlan says how the run of a form goes on after PlanForm.
type SharedPlan struct {
	Groups  int   // of windows, for ReadGroup
	Windows int   // in all groups
	Results int64 // expected, or extract.Unknown
}

// GroupReport is what ReadGroup did.
type GroupReport struct {
	Windows  int
	Results  int64
	Requests load.Requests
	// Left says why the group was left to FinishForm; "" if it was read. The service
	// breaks the specification, and FinishForm knows how to go on.
	Left string
}

// errOver ends a run before its last step, without an error.
var errOver = errors.New("the run is over for this process")

// PlanForm begins the run of a form: it opens, decides and plans. The plan is nil if there
// is nothing to share. Then PlanForm has done the whole run, as the report tells.
func PlanForm(ctx context.Context, def *definition.Definition, o Options, form string) (*SharedPlan, *FormReport, error) {
	output.SweepLetters(def.State, time.Now(), false)
	f, err := sharedRun(ctx, def, o, form, stepPlan)
	if f == nil {
		return nil, nil, err
	}
	return f.shares, f.report, err
}

// FinishForm ends the run of a form: it reads what is missing, reconciles, stages and
// commits.
func FinishForm(ctx context.Context, def *definition.Definition, o Options, form string) (*FormReport, error) {
	f, err := sharedRun(ctx, def, o, form, stepFinish)
	if f == nil {
		return nil, err
	}
	return f.report, err
}

// EndForm gives up the run of a form that PlanForm has shared: it removes what a process
// has staged that died since, and gives the leases back. What was read is kept for the next
// run. It sends no request.
func EndForm(ctx context.Context, def *definition.Definition, o Options, form string) (err error) {
	o, client, err := o.shared(ctx, def, stepFinish, "e")
	if err != nil {
		return err
	}
	defer client.Close()
	f := newFormRun(def, o, client.Fork(), form, nil)
	defer func() { err = f.closed(ctx, err, f.outputs.Close(ctx)) }()
	if err := f.outputs.Open(ctx); err != nil {
		return err
	}
	c, err := openCheckpoint(ctx, def, f.o, form, f.outputs)
	if err != nil {
		return err
	}
	h, err := c.Header(ctx)
	if err == nil {
		f.outputs.DropStaged(ctx, h.RunID)
	}
	if errors.Is(err, load.ErrNotExist) {
		return nil
	}
	return err
}

func sharedRun(ctx context.Context, def *definition.Definition, o Options, form string, is step) (*formRun, error) {
	name := "f"
	if is == stepPlan {
		name = "p"
	}
	o, client, err := o.shared(ctx, def, is, name)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return lastRun(ctx, def, o, client, form)
}

// shared completes the options of a process of a shared run.
func (o Options) shared(ctx context.Context, def *definition.Definition, is step, name string) (Options, extract.Client, error) {
	sharing := *o.Shared
	sharing.step, o.Shared = is, &sharing
	o.RunID = fmt.Sprintf("%s-%s.%d", sharing.Run, name, sharing.Try)
	o = o.withDefaults()
	o.windows, o.encoders, o.forms = reading.NewSlots(def.Source.Requests.Concurrency), reading.NewSlots(runtime.GOMAXPROCS(0)), 1
	client, err := account.NewClient(ctx, def, o.Options)
	if err != nil {
		return o, nil, err
	}
	client.Reads(1)
	return o, client, nil
}

// ReadGroup reads a group of windows of the plan that PlanForm made. It takes over what an
// earlier try of the same group has read. The error wraps checkpoint.ErrNoPlan if another
// run came between. The run then begins again with PlanForm.
func ReadGroup(ctx context.Context, def *definition.Definition, o Options, form string, group int) (report *GroupReport, err error) {
	o, client, err := o.shared(ctx, def, stepRead, groupName(group))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	f := newFormRun(def, o, client.Fork(), form, nil)
	report = &GroupReport{}
	defer func() { report.Requests = requestsOf(f.reader.Client.Requests()) }()
	defer func() { err = f.closed(ctx, err, f.outputs.Close(ctx)) }()
	if err := f.outputs.Open(ctx); err != nil {
		return report, err
	}
	windows, err := f.join(ctx, group)
	if err != nil {
		return report, err
	}
	left := make([]*reading.Window, 0, len(windows))
	for _, w := range windows {
		if !w.Done {
			left = append(left, w)
		}
	}
	err = f.reader.Read(ctx, left)
	if leavesDatesOut(err) || isError[*extract.PagingError](err) || f.doubtsCounts(err) {
		report.Left = err.Error()
		return report, nil
	}
	if err != nil {
		return report, stopped(ctx, err)
	}
	report.Windows, report.Results = len(windows), reading.Results(windows)
	return report, nil
}

// join opens the checkpoint of the run, and returns the group's windows with what is read
// of them.
func (f *formRun) join(ctx context.Context, group int) ([]*reading.Window, error) {
	r, name := f.reader, f.o.Shared.writer(f.o.Shared.Run)
	of := func(writer string) bool { // those of other groups would be many
		return !strings.HasPrefix(writer, name+"-"+groupName("")) || strings.HasPrefix(writer, name+"-"+groupName(group)+".")
	}
	var err error
	if r.Checkpoint, err = openCheckpoint(ctx, r.Def, f.o, r.Name, f.outputs); err != nil {
		return nil, err
	}
	r.Checkpoint.Mem, r.Checkpoint.Writer = f.o.batches, f.o.Shared.writer(r.RunID)
	plan, found, err := r.Checkpoint.Join(ctx, f.o.Shared.Run, group, of)
	if err != nil {
		return nil, err
	}
	if err := f.fits(found); err != nil {
		return nil, errors.Join(checkpoint.ErrNoPlan, err)
	}
	shares := &extract.Plan{Groups: []int64{0}}
	for _, s := range plan.Groups[group] {
		shares.Windows = append(shares.Windows, s.Planned())
	}
	r.Expect(extract.Unknown)
	r.Pages.Trust(found.Trusted)
	r.Pages.RequireOrder(plan.Ordered)
	if err := r.SettleSchema(ctx, reading.Start{Kept: f.outputs.Kept, Left: found, Joined: true}); err != nil {
		return nil, err
	}
	windows := reading.Windows(shares)
	return windows, r.Join(windows, found)
}

// groupName is the name of the processes that read a group. Without a number it is the
// beginning of all their names.
func groupName(group any) string { return fmt.Sprint("r", group) }

// share ends the run of PlanForm if other processes can help with it. A run of one group
// goes on. So does one to a destination whose lease only one process can hold, and one
// against a service that is not read in the usual way.
func (f *formRun) share(ctx context.Context) error {
	r, c := f.reader, f.reconciler
	if f.o.Shared == nil || f.o.Shared.step != stepPlan || r.Dateless || r.Unordered || r.Countless != "" || f.iv.Continues {
		return nil
	}
	plan := checkpoint.Plan{Run: f.o.Shared.Run, Groups: f.groups(), Ordered: r.Large(c.Plan)}
	if len(plan.Groups) < 2 || !f.outputs.Shared() {
		return nil
	}
	if err := f.begin(ctx); err != nil {
		return err
	}
	if err := r.KeepHeads(ctx, c.Windows); err != nil {
		return err
	}
	if err := r.Checkpoint.KeepPlan(ctx, plan); err != nil {
		return err
	}
	f.shares = &SharedPlan{Groups: len(plan.Groups), Results: c.Plan.Total}
	for _, g := range plan.Groups {
		f.shares.Windows += len(g)
	}
	return errOver
}

// mostShares is how many windows a group has at most.
const mostShares = 250

// groups divides the windows of the plan into groups of adjacent ones, by the requests
// that each takes.
func (f *formRun) groups() (groups [][]checkpoint.Share) {
	most := int64(cmp.Or(f.o.Shared.GroupRequests, 100))
	var pages int64
	for _, w := range f.reconciler.Windows {
		if w.Planned.Count == 0 {
			continue
		}
		n := max(1, pagesOf(w.Planned.Count, int(f.reader.PageSize())))
		if last := len(groups) - 1; last < 0 || pages+n > most || len(groups[last]) == mostShares {
			groups, pages = append(groups, nil), 0
		}
		last := len(groups) - 1
		pages += n
		groups[last] = append(groups[last], checkpoint.Share{Window: load.Span(w.Planned.Window.From, w.Planned.Window.To), Count: w.Planned.Count})
	}
	return groups
}

// run returns the id of the run that a process belongs to.
func (s *Shared) run(own string) string {
	if s == nil {
		return own
	}
	return s.Run
}

// decided returns the instant at which the run decides what it reads.
func (s *Shared) decided(now time.Time) time.Time {
	if s == nil || s.Decided.IsZero() {
		return now
	}
	return s.Decided
}

// spent adds the requests of the run's earlier processes.
func (s *Shared) spent(own load.Requests) load.Requests {
	if s == nil {
		return own
	}
	return own.Plus(s.Spent)
}

// writer returns the name of a process in a checkpoint: its run id without the time.
func (s *Shared) writer(runID string) string {
	if s == nil {
		return ""
	}
	_, name, _ := strings.Cut(runID, "-")
	return name
}

// wrote tells whether another process of this run has committed all outputs.
func (s *Shared) wrote(outputs *output.Set) bool {
	return s != nil && outputs.Written(func(runID string) bool { return strings.HasPrefix(runID, s.Run+"-") })
}

// sharing says how the processes share the leases. Only those that read groups hold one at
// the same time. Each other one takes it from an earlier try of itself.
func (s *Shared) sharing(goesOn func() bool) output.Sharing {
	if s == nil {
		return output.Sharing{}
	}
	sharing := output.Sharing{Owner: s.Owner, Keeps: goesOn}
	if s.step == stepRead {
		sharing.RunID, sharing.Keeps = s.Run, func() bool { return true }
	}
	return sharing
}

// SharedForms lists the forms that workflows run, and those that cannot be run together
// with another form because both would be written to one place.
func SharedForms(ctx context.Context, def *definition.Definition, o account.Options) (forms []string, clashes []*CollisionError, err error) {
	o = o.WithDefaults()
	all, err := account.ListForms(ctx, def, o)
	if err != nil {
		return nil, nil, err
	}
	clash := collisions(def, all, o.Tables.Formats, o.RunID, foldsCase())
	for _, form := range all {
		if e := clash[form]; e != nil {
			clashes = append(clashes, e)
		} else {
			forms = append(forms, form)
		}
	}
	return forms, clashes, nil
}
