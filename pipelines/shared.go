package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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
// windows into the checkpoint at the destination, and ReconcileForm makes it agree. That may
// ask for more groups to be read. StageShare stages a share of the parts, and CommitForm
// commits. Several ReadGroup or StageShare may be under way at once. Nothing but the
// checkpoint and the lease of the destination passes between them, so each may be tried
// again anywhere.
//
// There is no second implementation of a run. PlanForm is a run that stops when others
// can go on. ReconcileForm is one that resumes from what they left, and that stops when
// others can stage. CommitForm is the end of that one.

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
	// Of is SharedPlan.Of of the process that this one goes on from; "" for PlanForm.
	Of string
	// Alone means that ReconcileForm asks for no more groups.
	Alone bool

	step step
	name string // of this try of this process, which its run id ends with
}

// step is what a process does of a shared run.
type step int

const (
	stepEnd step = iota
	stepPlan
	stepRead
	stepReconcile
	stepStage
	stepCommit
)

// SharedPlan says how the run of a form goes on: by groups that are read, after which
// ReconcileForm is called, or by shares that are staged, after which CommitForm is called.
type SharedPlan struct {
	Of      string // names the process that made it, for Shared.Of
	Groups  int    // of windows, for ReadGroup
	Shares  int    // of parts, for StageShare; 0 if there are groups
	Windows int    // in all groups or shares
	Results int64  // that are expected, or extract.Unknown
}

// GroupReport is what ReadGroup did.
type GroupReport struct {
	Windows  int
	Results  int64
	Requests load.Requests
	// Left says why the group was left to ReconcileForm; "" if it was read. The service
	// breaks the specification, and ReconcileForm knows how to go on.
	Left string
}

// errOver ends a run before its last step, without an error.
var errOver = errors.New("the run is over for this process")

// PlanForm begins the run of a form: it opens, decides and plans. The plan is nil if there
// is nothing to share. Then PlanForm has done the whole run, as the report tells.
func PlanForm(ctx context.Context, def *definition.Definition, o Options, form string) (*SharedPlan, *FormReport, error) {
	return sharedRun(ctx, def, o, form, stepPlan, "p")
}

// ReconcileForm goes on with the run of a form whose groups are read: it reads what is
// missing, and reconciles. The plan is nil if there is nothing to share. Then it has
// staged and committed, as the report tells.
func ReconcileForm(ctx context.Context, def *definition.Definition, o Options, form string) (*SharedPlan, *FormReport, error) {
	return sharedRun(ctx, def, o, form, stepReconcile, o.Shared.Of+".f")
}

// CommitForm ends the run of a form whose shares are staged. It stages what is missing. It
// sends no request. The error wraps checkpoint.ErrNoPlan if another run came between.
func CommitForm(ctx context.Context, def *definition.Definition, o Options, form string) (*FormReport, error) {
	_, report, err := sharedRun(ctx, def, o, form, stepCommit, o.Shared.Of+".c")
	return report, unstageable(err)
}

// EndForm gives up the run of a form that PlanForm has shared: it removes what a process
// has staged that died since, and gives the leases back. What was read is kept for the next
// run. It sends no request.
func EndForm(ctx context.Context, def *definition.Definition, o Options, form string) (err error) {
	o, client, err := o.shared(ctx, def, stepEnd, "e")
	if err != nil {
		return err
	}
	defer client.Close()
	f := newFormRun(def, o, client.Fork(), form)
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
		f.outputs.DropStaged(ctx, append(h.Runs, h.RunID)...)
	}
	if errors.Is(err, load.ErrNotExist) {
		return nil
	}
	return err
}

func sharedRun(ctx context.Context, def *definition.Definition, o Options, form string, is step, name string) (*SharedPlan, *FormReport, error) {
	o, client, err := o.shared(ctx, def, is, name)
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	f, err := lastRun(ctx, def, o, client, form)
	return f.shares, f.report, err
}

// shared completes the options of a process of a shared run.
func (o Options) shared(ctx context.Context, def *definition.Definition, is step, name string) (Options, extract.Client, error) {
	sharing := *o.Shared
	sharing.step, sharing.name, o.Shared = is, fmt.Sprintf("%s.%d", name, sharing.Try), &sharing
	o.RunID = sharing.Run + "-" + sharing.name
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
	o, client, err := o.shared(ctx, def, stepRead, groupName(o.Shared.Of, group))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	f := newFormRun(def, o, client.Fork(), form)
	report = &GroupReport{}
	defer func() { report.Requests = requestsOf(f.reader.Client.Requests()) }()
	defer func() { err = f.closed(ctx, err, f.outputs.Close(ctx)) }()
	windows, err := sharedSteps{f}.joinGroup(ctx, group)
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
	if f.countless(err) != "" {
		report.Left = err.Error()
		return report, nil
	}
	if err != nil {
		return report, stopped(ctx, err)
	}
	report.Windows, report.Results = len(windows), reading.Results(windows)
	return report, nil
}

// sharedSteps are the steps of a run that processes share.
type sharedSteps struct{ *formRun }

// join opens the outputs and the checkpoint of the run, and decodes a note of the process
// that this one goes on from.
func (f sharedSteps) join(ctx context.Context, kind string, note any) (found *checkpoint.Inherited, err error) {
	if err := f.openCheckpoint(ctx); err != nil {
		return nil, err
	}
	if f.o.Shared.is(stepCommit) && f.o.Shared.wrote(f.outputs) { // an earlier try, which could not say so
		return nil, errOver
	}
	found, err = f.reader.Checkpoint.Join(ctx, f.o.Shared.Run, kind, f.o.Shared.Of, note)
	if err != nil {
		return nil, err
	}
	if err := f.fits(found); err != nil {
		return nil, errors.Join(checkpoint.ErrNoPlan, err)
	}
	return found, nil
}

// joinGroup joins the run, and returns the group's windows with what is read of them.
func (f sharedSteps) joinGroup(ctx context.Context, group int) ([]*reading.Window, error) {
	var plan checkpoint.Plan
	found, err := f.join(ctx, checkpoint.NotePlan, &plan)
	if err != nil {
		return nil, err
	}
	if group >= len(plan.Groups) {
		return nil, checkpoint.ErrNoPlan
	}
	r, s := f.reader, f.o.Shared
	all, own := s.writer(s.Run)+"-"+groupName(s.Of, ""), s.writer(s.Run)+"-"+groupName(s.Of, group)+"."
	of := func(writer string) bool { // those of the plan's other groups would be many
		return !strings.HasPrefix(writer, all) || strings.HasPrefix(writer, own)
	}
	if err := r.Checkpoint.FindOwn(ctx, found, of); err != nil {
		return nil, err
	}
	shares := &extract.Plan{Groups: []int64{extract.Unknown}}
	for _, s := range plan.Groups[group] {
		shares.Windows = append(shares.Windows, s.Planned())
	}
	r.Expect(extract.Unknown)
	if err := r.SettleSchema(ctx, reading.Start{Kept: f.outputs.Kept, Left: found, Joined: true}); err != nil {
		return nil, err
	}
	windows := reading.Windows(shares)
	for _, w := range windows {
		w.Summed = w.Planned.Count == extract.Unknown && found.Trusted && !plan.Again
	}
	return windows, r.Join(windows, found)
}

// groupName is the name of the processes that read a group of the plan of another one.
// Without a number it is the beginning of all their names.
func groupName(of string, group any) string { return fmt.Sprint(of, ".r", group) }

// shareable tells whether other processes can help with the run. They cannot where only
// one process can hold the lease of a destination, nor against a service that is not read
// in the usual way.
func (f sharedSteps) shareable(by step) bool {
	r := f.reader
	return f.o.Shared.is(by) && r.Countless == "" && !f.iv.Continues && f.outputs.Shared()
}

// share ends the run of PlanForm if other processes can read for it. A run of one group
// goes on.
func (f sharedSteps) share(ctx context.Context) error {
	if !f.shareable(stepPlan) || len(f.groups(f.reconciler.Windows)) < 2 {
		return nil
	}
	if err := f.begin(ctx); err != nil {
		return err
	}
	return f.leaveWindows(ctx, f.reconciler.Windows, false)
}

// leaveAgain ends the run of ReconcileForm if windows that it would read are enough for
// several groups. Other processes read them, and ReconcileForm is called again. Results
// of older parts and those without a date are for the run alone.
func (f sharedSteps) leaveAgain(ctx context.Context, windows []*reading.Window) error {
	own := func(w *reading.Window) bool { return !w.OfRange() }
	if !f.shareable(stepReconcile) || f.o.Shared.Alone || slices.ContainsFunc(windows, own) || len(f.groups(windows)) < 2 {
		return nil
	}
	return f.leaveWindows(ctx, windows, true)
}

// leaveWindows leaves windows to other processes, in groups.
func (f sharedSteps) leaveWindows(ctx context.Context, windows []*reading.Window, again bool) error {
	r, c, s := f.reader, f.reconciler, f.o.Shared
	plan := checkpoint.Plan{Run: s.Run, Groups: f.groups(windows), Again: again}
	if err := r.KeepHeads(ctx, windows); err != nil {
		return err
	}
	if err := r.Checkpoint.PutNote(ctx, checkpoint.NotePlan, s.name, plan); err != nil {
		return err
	}
	f.shares = &SharedPlan{Of: s.name, Groups: len(plan.Groups), Results: c.Plan.Total}
	for _, g := range plan.Groups {
		f.shares.Windows += len(g)
	}
	return errOver
}

// mostWindows is how many windows a group has at most.
const mostWindows = 250

// groups divides windows into groups of adjacent ones, by the requests that each takes.
func (f sharedSteps) groups(windows []*reading.Window) (groups [][]checkpoint.Share) {
	most := f.o.Shared.groupRequests()
	var pages int64
	for _, w := range windows {
		if w.Planned.Count == 0 && w.IDs == nil {
			continue
		}
		n := max(1, pagesOf(expected(w), int(f.reader.PageSize())))
		if last := len(groups) - 1; last < 0 || pages+n > most || len(groups[last]) == mostWindows {
			groups, pages = append(groups, nil), 0
		}
		last := len(groups) - 1
		pages += n
		groups[last] = append(groups[last], checkpoint.Share{Window: load.Span(w.Planned.Window.From, w.Planned.Window.To), Count: w.Planned.Count})
	}
	return groups
}

// expected is about how many results a window holds.
func expected(w *reading.Window) int64 {
	switch {
	case w.IDs != nil:
		return max(w.Results(), w.Planned.Count)
	case w.Planned.Count == extract.Unknown && w.Group != nil && len(w.Group.Windows) > 0:
		return w.Group.Count / int64(len(w.Group.Windows))
	}
	return w.Planned.Count
}

// groupRequests is about how many requests a group takes.
func (s *Shared) groupRequests() int64 { return int64(cmp.Or(s.GroupRequests, 100)) }

// run returns the id of the run that a process belongs to.
func (s *Shared) run(own string) string {
	if s == nil {
		return own
	}
	return s.Run
}

// is tells whether this process does a step of a shared run.
func (s *Shared) is(is step) bool { return s != nil && s.step == is }

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

// sharing says how the processes share the outputs. Those that read groups or stage shares
// hold the leases at the same time. Each other one takes them from an earlier try of itself.
func (s *Shared) sharing(goesOn func() bool) output.Sharing {
	if s == nil {
		return output.Sharing{}
	}
	if s.step == stepRead || s.step == stepStage {
		return output.Sharing{Owner: s.Owner, RunID: s.Run, Beside: true, Keeps: func() bool { return true }}
	}
	return output.Sharing{Owner: s.Owner, RunID: s.Run, Keeps: goesOn}
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
