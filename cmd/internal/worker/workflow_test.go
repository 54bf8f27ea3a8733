package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// played is a definition's activities, without any work.
type played struct {
	mu     sync.Mutex
	forms  []string
	fails  map[string]int // exit codes, by form
	run    map[string]int // how often each form was run
	listed int
}

// play runs a Pipeline workflow with an id and these activities.
func (p *played) play(t *testing.T, id string, in PipelineInput) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id})
	a := &Activities{}
	env.RegisterActivity(a)
	env.RegisterWorkflow(Pipeline)
	if p.run == nil {
		p.run = map[string]int{}
	}
	env.OnActivity(a.List, mock.Anything, mock.Anything).Return(func(context.Context, PipelineInput) (*Listed, error) {
		p.listed++
		return &Listed{Pipeline: "p", Forms: p.forms, Clashes: []FormEnd{{Form: "clash", Code: 78}}}, nil
	}).Maybe()
	env.OnActivity(a.Run, mock.Anything, mock.Anything).Return(func(_ context.Context, in FormInput) (*FormEnd, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.run[in.Form]++
		if code := p.fails[in.Form]; code != 0 && (code != 75 || p.run[in.Form] < 3) {
			return nil, temporal.NewApplicationErrorWithOptions("it failed", fmt.Sprint(typePrefix, code), temporal.ApplicationErrorOptions{NonRetryable: !passes(code)})
		}
		return &FormEnd{Form: in.Form, Rows: 1}, nil
	}).Maybe()
	env.ExecuteWorkflow(Pipeline, in)
	return env
}

func formNames(n int) []string {
	forms := make([]string, n)
	for i := range forms {
		forms[i] = fmt.Sprint("form", i)
	}
	return forms
}

// TestPipeline runs 700 forms in two histories. A refused key begins no further one, any other
// error does not stop the others, and one that may pass is tried again.
func TestPipeline(t *testing.T) {
	needs.Slow(t)
	for code, tries := range map[int]int{0: 1, 66: 1, 75: 3, 77: 1} {
		p := &played{forms: formNames(700), fails: map[string]int{"form3": code}}
		in := PipelineInput{Source: Source{Path: "p.yaml"}}
		var end PipelineEnd
		for histories := 1; ; histories++ {
			env := p.play(t, "formetl/p", in)
			next, goesOn := errors.AsType[*workflow.ContinueAsNewError](env.GetWorkflowError())
			if goesOn {
				if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := env.GetWorkflowResult(&end); err != nil || histories != 2 || p.listed != 1 {
				t.Fatalf("%d: %v after %d histories, listed %d times", code, err, histories, p.listed)
			}
			break
		}
		ended := map[int]int{}
		for i, f := range end.Forms {
			if ended[f.Code]++; i > 0 && f.Form != p.forms[i-1] || i == 0 && f.Form != "clash" {
				t.Fatalf("form %d is %s", i, f.Form)
			}
		}
		if len(end.Forms) != 701 || p.run["form3"] != tries || ended[78] != 1 {
			t.Errorf("%d: %d forms, %d tries, ended with %v", code, len(end.Forms), p.run["form3"], ended)
		}
		switch code {
		case 66:
			if len(p.run) != 700 || ended[66] != 1 {
				t.Errorf("%d forms were run, ended with %v", len(p.run), ended)
			}
		case 77:
			if len(p.run) > formsAtOnce+formsOfHistory || ended[77] < 100 {
				t.Errorf("%d forms were run, ended with %v", len(p.run), ended)
			}
		default:
			if ended[0] != 700 {
				t.Errorf("%d: ended with %v", code, ended)
			}
		}
	}
}

// TestScheduled: a schedule's workflow, which has an id of its own, has the one of the
// definition's id do the work.
func TestScheduled(t *testing.T) {
	p := &played{forms: formNames(3)}
	var end PipelineEnd
	if err := p.play(t, "formetl/p-2026-11-26T03:15:00Z", PipelineInput{}).GetWorkflowResult(&end); err != nil || len(end.Forms) != 4 || len(p.run) != 3 {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestHistories replays the histories of workflows that earlier versions began.
func TestHistories(t *testing.T) {
	kept, err := filepath.Glob("testdata/*.json")
	if err != nil || len(kept) == 0 {
		t.Fatalf("%v, %v", kept, err)
	}
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflow(Pipeline)
	for _, file := range kept {
		data, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		history, err := client.HistoryFromJSON(data, client.HistoryJSONOptions{})
		if err = errors.Join(err, data.Close()); err != nil {
			t.Fatal(err)
		}
		id := history.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
		o := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}}
		if err := replayer.ReplayWorkflowHistoryWithOptions(nil, history, o); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
