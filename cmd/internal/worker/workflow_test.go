package worker

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/formetl/formetl/load"
)

// played is a form's activities, without any work.
type played struct {
	mu     sync.Mutex
	plans  []PlanEnd // for each Plan
	read   func(group, try int) (*ReadEnd, error)
	finish error
	more   []PlanEnd      // for each Reconcile; without one, it has done the rest
	gone   map[string]int // how often activities find that another run came between

	planned, finished, ended int
	alone, committed         int
	staged                   map[string]bool
	groups                   map[int]int // how often each was read
	now, peak                int
}

// isGone counts down how often an activity finds that another run came between.
func (p *played) isGone(what string) bool {
	p.gone[what]--
	return p.gone[what] >= 0
}

// play runs a Form workflow with these activities.
func (p *played) play(t *testing.T, in FormInput) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	a := &Activities{}
	env.RegisterActivity(a)
	env.RegisterWorkflow(Form)
	p.mu.Lock()
	p.groups, p.staged = map[int]int{}, map[string]bool{}
	if p.gone == nil {
		p.gone = map[string]int{}
	}
	p.mu.Unlock()
	env.OnActivity(a.Plan, mock.Anything, mock.Anything).Return(func(context.Context, Step) (*PlanEnd, error) {
		p.planned++
		plan := p.plans[min(p.planned, len(p.plans))-1]
		return &plan, nil
	}).Maybe()
	env.OnActivity(a.Read, mock.Anything, mock.Anything).Return(func(_ context.Context, in Step) (*ReadEnd, error) {
		p.mu.Lock()
		p.groups[in.Group]++
		try := p.groups[in.Group]
		p.now++
		p.peak = max(p.peak, p.now)
		p.mu.Unlock()
		time.Sleep(time.Millisecond)
		p.mu.Lock()
		p.now--
		p.mu.Unlock()
		if p.read == nil {
			return &ReadEnd{Windows: 1, Requests: load.Requests{Results: 1}}, nil
		}
		return p.read(in.Group, try)
	}).Maybe()
	env.OnActivity(a.Reconcile, mock.Anything, mock.Anything).Return(func(_ context.Context, in Step) (*PlanEnd, error) {
		if p.finished++; in.Alone {
			p.alone++
		}
		if len(p.more) > 0 {
			next := p.more[0]
			p.more = p.more[1:]
			return &next, nil
		}
		return &PlanEnd{Done: &FormEnd{Form: in.Form, RunID: in.Run}}, p.finish
	}).Maybe()
	env.OnActivity(a.Stage, mock.Anything, mock.Anything).Return(func(_ context.Context, in Step) (*StageEnd, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.staged[fmt.Sprint(in.Of, in.Group)] = true
		return &StageEnd{Gone: p.isGone("stage")}, nil
	}).Maybe()
	env.OnActivity(a.Commit, mock.Anything, mock.Anything).Return(func(_ context.Context, in Step) (*CommitEnd, error) {
		if p.isGone("commit") {
			return &CommitEnd{Gone: true}, nil
		}
		p.committed++
		return &CommitEnd{Done: &FormEnd{Form: in.Form, RunID: in.Run}}, p.finish
	}).Maybe()
	env.OnActivity(a.End, mock.Anything, mock.Anything).Return(func(context.Context, Step) error {
		p.ended++
		return nil
	}).Maybe()
	env.ExecuteWorkflow(Form, in)
	return env
}

// tries returns how often each group was read so far. A workflow that ends early does not wait
// for the activities that it has begun.
func (p *played) tries() map[int]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.groups)
}

func exitError(code int) error {
	return temporal.NewApplicationErrorWithOptions("it failed", fmt.Sprint(typePrefix, code), temporal.ApplicationErrorOptions{NonRetryable: !passes(code)})
}

// TestFormReadsEachGroupOnce holds the usual way: a few groups at once, each once, and the
// requests of all activities in the end.
func TestFormReadsEachGroupOnce(t *testing.T) {
	p := &played{plans: []PlanEnd{{Groups: 30, Windows: 300, Requests: load.Requests{Count: 2}}}}
	env := p.play(t, FormInput{Form: "form1"})
	var end FormEnd
	if err := env.GetWorkflowResult(&end); err != nil {
		t.Fatal(err)
	}
	if len(p.tries()) != 30 || p.peak > sideBySide || p.finished != 1 || p.ended != 0 || end.Requests != (load.Requests{Results: 30, Count: 2}) || end.Groups != 30 {
		t.Errorf("%d groups, at most %d at once, finished %d, ended %d: %+v", len(p.tries()), p.peak, p.finished, p.ended, end)
	}
}

// TestFormOfOneActivity ends with Plan if that has done the whole run.
func TestFormOfOneActivity(t *testing.T) {
	p := &played{plans: []PlanEnd{{Requests: load.Requests{Results: 3}, Done: &FormEnd{Form: "form1", Rows: 7}}}}
	var end FormEnd
	if err := p.play(t, FormInput{Form: "form1"}).GetWorkflowResult(&end); err != nil || end.Rows != 7 || end.Requests.Results != 3 || p.finished != 0 {
		t.Errorf("%+v, %v, finished %d", end, err, p.finished)
	}
}

// TestFormOfManyWindows begins a new history after 2,000 windows, and goes on there.
func TestFormOfManyWindows(t *testing.T) {
	in := FormInput{Form: "form1"}
	p := &played{plans: []PlanEnd{{Groups: 50, Windows: 5000}}}
	groups := 0
	for history := 1; ; history++ {
		env := p.play(t, in)
		groups += len(p.tries())
		var next *workflow.ContinueAsNewError
		if !asError(env.GetWorkflowError(), &next) {
			if err := env.GetWorkflowError(); err != nil || history != 3 || groups != 50 || p.planned != 1 {
				t.Errorf("after %d histories: %v; %d groups, planned %d times", history, err, groups, p.planned)
			}
			return
		}
		if in = decoded(t, next); in.Cursor.Next != 20*history {
			t.Fatalf("history %d ends at group %d", history, in.Cursor.Next)
		}
	}
}

// TestFormPlansAgain begins again if another run came between, but not for ever.
func TestFormPlansAgain(t *testing.T) {
	p := &played{plans: []PlanEnd{{Groups: 4, Windows: 4}}}
	p.read = func(group, _ int) (*ReadEnd, error) { return &ReadEnd{Gone: group == 2 && p.planned == 1}, nil }
	if err := p.play(t, FormInput{Form: "form1"}).GetWorkflowError(); err != nil || p.planned != 2 || p.finished != 1 {
		t.Errorf("%v; planned %d, finished %d", err, p.planned, p.finished)
	}
	p = &played{plans: p.plans, read: func(int, int) (*ReadEnd, error) { return &ReadEnd{Gone: true}, nil }}
	err := p.play(t, FormInput{Form: "form1"}).GetWorkflowError()
	if code, _ := codeOf(err); code != 75 || p.planned != mostBegun || p.finished != 0 {
		t.Errorf("%v; planned %d, finished %d", err, p.planned, p.finished)
	}
}

// TestFormLeavesToReconcile ends the reading if a group cannot be read in the usual way.
func TestFormLeavesToReconcile(t *testing.T) {
	for name, read := range map[string]func(int, int) (*ReadEnd, error){
		"the service is peculiar": func(int, int) (*ReadEnd, error) { return &ReadEnd{Left: true}, nil },
		"the data are at fault":   func(int, int) (*ReadEnd, error) { return nil, exitError(65) },
	} {
		p := &played{plans: []PlanEnd{{Groups: 100, Windows: 100}}, read: read}
		if err := p.play(t, FormInput{Form: "form1"}).GetWorkflowError(); err != nil || p.finished != 1 || p.alone != 1 || len(p.tries()) > 2*sideBySide {
			t.Errorf("%s: %v; finished %d after %d groups", name, err, p.finished, len(p.tries()))
		}
	}
}

// TestFormStagesAndCommits holds that each share is staged, and then all is committed.
func TestFormStagesAndCommits(t *testing.T) {
	shares := PlanEnd{Of: "f", Shares: 3, Requests: load.Requests{Count: 1}}
	p := &played{plans: []PlanEnd{{Of: "p", Groups: 2, Windows: 2}}, more: []PlanEnd{shares}}
	var end FormEnd
	if err := p.play(t, FormInput{Form: "form1"}).GetWorkflowResult(&end); err != nil {
		t.Fatal(err)
	}
	if len(p.staged) != 3 || !p.staged["f2"] || p.finished != 1 || p.committed != 1 || p.ended != 0 || end.Groups != 2 || end.Requests != (load.Requests{Results: 2, Count: 1}) {
		t.Errorf("staged %v, reconciled %d, committed %d, ended %d: %+v", p.staged, p.finished, p.committed, p.ended, end)
	}
	for _, what := range []string{"stage", "commit"} {
		p := &played{plans: p.plans, more: []PlanEnd{shares, shares}, gone: map[string]int{what: 1}}
		if err := p.play(t, FormInput{Form: "form1"}).GetWorkflowError(); err != nil || p.planned != 2 || p.committed != 1 {
			t.Errorf("another run came before %s: %v; planned %d, committed %d", what, err, p.planned, p.committed)
		}
	}
	p = &played{plans: p.plans, more: []PlanEnd{shares}, finish: exitError(74)}
	if code, _ := codeOf(p.play(t, FormInput{Form: "form1"}).GetWorkflowError()); code != 74 || p.ended != 1 {
		t.Errorf("the commit fails with %d, ended %d", code, p.ended)
	}
}

// TestFormReadsMore reads what Reconcile asks for. After a few times it reads alone.
func TestFormReadsMore(t *testing.T) {
	again := PlanEnd{Of: "f", Groups: 2, Windows: 2}
	p := &played{plans: []PlanEnd{{Of: "p", Groups: 5, Windows: 5}}, more: []PlanEnd{again, again, again}}
	var end FormEnd
	if err := p.play(t, FormInput{Form: "form1"}).GetWorkflowResult(&end); err != nil || end.Groups != 11 || p.finished != 4 || p.alone != 1 || p.tries()[0] != 4 || p.tries()[4] != 1 {
		t.Errorf("%v: %+v; reconciled %d, alone %d, read %v", err, end, p.finished, p.alone, p.tries())
	}
}

// TestFormRetries tries a step again for a reason that may pass, and for no other. A run that
// is given up gives its leases back.
func TestFormRetries(t *testing.T) {
	for _, c := range []struct{ code, tries int }{{75, 3}, {143, 3}, {65, 1}, {66, 1}, {69, 1}, {70, 1}, {77, 1}, {78, 1}} {
		p := &played{plans: []PlanEnd{{Groups: 2, Windows: 2}}}
		p.read = func(group, try int) (*ReadEnd, error) {
			if group == 0 && try < 3 {
				return nil, exitError(c.code)
			}
			return &ReadEnd{Windows: 1}, nil
		}
		err := p.play(t, FormInput{Form: "form1"}).GetWorkflowError()
		if p.tries()[0] != c.tries {
			t.Errorf("%d: %d tries", c.code, p.tries()[0])
		}
		got, _ := codeOf(err)
		switch failed := c.tries == 1 && c.code != 65; {
		case failed && (err == nil || got != c.code || p.ended != 1):
			t.Errorf("%d: the workflow fails with %d, ended %d: %v", c.code, got, p.ended, err)
		case !failed && err != nil:
			t.Errorf("%d: %v", c.code, err)
		}
	}
	p := &played{plans: []PlanEnd{{Groups: 2, Windows: 2}}, finish: exitError(74)}
	if code, _ := codeOf(p.play(t, FormInput{Form: "form1"}).GetWorkflowError()); code != 74 || p.finished != 1 {
		t.Errorf("the workflow fails with %d after %d tries", code, p.finished)
	}
}

// TestPipeline runs forms side by side. A refused key begins no further one, and any other
// error does not stop the others.
func TestPipeline(t *testing.T) {
	for code, begun := range map[int]int{0: 700, 66: 700, 77: formsAtOnce} {
		var mu sync.Mutex
		run := 0
		in := PipelineInput{Source: Source{Path: "p.yaml"}}
		forms := make([]string, 700)
		for i := range forms {
			forms[i] = fmt.Sprint("form", i)
		}
		ended := map[int]int{}
		for range 3 {
			env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
			env.SetTestTimeout(30 * time.Second)
			a := &Activities{}
			env.RegisterActivity(a)
			env.RegisterWorkflow(Pipeline)
			env.RegisterWorkflow(Form)
			env.OnActivity(a.List, mock.Anything, mock.Anything).Return(&Listed{Pipeline: "p", Forms: forms}, nil)
			env.OnWorkflow(Form, mock.Anything, mock.Anything).Return(func(_ workflow.Context, in FormInput) (*FormEnd, error) {
				mu.Lock()
				defer mu.Unlock()
				if run++; code != 0 && in.Form == "form3" {
					return nil, exitError(code)
				}
				return &FormEnd{Form: in.Form}, nil
			}).Maybe()
			env.ExecuteWorkflow(Pipeline, in)
			var next *workflow.ContinueAsNewError
			if asError(env.GetWorkflowError(), &next) {
				in = decodedPipeline(t, next)
				continue
			}
			var end PipelineEnd
			if err := env.GetWorkflowResult(&end); err != nil || len(end.Forms) != 700 {
				t.Fatalf("%d: %v, %d forms", code, err, len(end.Forms))
			}
			for i, f := range end.Forms {
				if ended[f.Code]++; f.Form != forms[i] {
					t.Fatalf("form %d is %s", i, f.Form)
				}
			}
			break
		}
		if code != 77 && (run != begun || code != 0 && ended[code] != 1) || code == 77 && run > 2*begun+formsOfHistory {
			t.Errorf("%d: %d forms were begun; they ended with %v", code, run, ended)
		}
	}
}

// TestBudgetGoesOn begins a new history after many questions, and knows there what it has
// lent. Without questions it ends.
func TestBudgetGoesOn(t *testing.T) {
	var next *workflow.ContinueAsNewError
	var last Share
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	asked := 0
	var ask func() // asks, and has itself called again: the environment keeps few callbacks
	ask = func() {
		if asked++; asked > mostUpdates {
			return
		}
		env.UpdateWorkflow(shareUpdate, fmt.Sprint(asked), &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Error(err) },
			OnComplete: func(s any, err error) {
				if err == nil {
					last, _ = s.(Share)
				}
			},
		}, Ask{Worker: "w", Limits: Limits{Concurrency: 4, PerMinute: 50, Timeout: time.Minute}, Want: 3, Busy: 1, Grant: last.Grant, Unused: last.Booked})
		env.RegisterDelayedCallback(ask, 100*time.Millisecond)
	}
	env.RegisterDelayedCallback(ask, 0)
	env.ExecuteWorkflow(Budget, ledger{})
	if !asError(env.GetWorkflowError(), &next) {
		t.Fatalf("got %v", env.GetWorkflowError())
	}
	var l ledger
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &l); err != nil || last.Slots != 3 || l.Holders["w"] == nil || l.Holders["w"].Slots != 3 || l.Holders["w"].Booked != 50 {
		t.Errorf("it goes on with %+v, %v", l, err)
	}
	env = (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	env.ExecuteWorkflow(Budget, l)
	if err := env.GetWorkflowError(); err != nil || !env.IsWorkflowCompleted() {
		t.Errorf("nobody asks: %v", err)
	}
}
