package workertest

import (
	"bytes"
	"testing"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/formetl/formetl/extract/formservice"
)

// histories are all events of all workflows that the server has.
type histories struct {
	events map[string]int // by the workflow's id, of its longest history
	bytes  map[string]int
	all    []byte
}

func (w *world) client() client.Client {
	w.t.Helper()
	c, err := client.Dial(client.Options{HostPort: w.temporal})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// histories reads what the server keeps of the world's workflows and of all budgets.
func (w *world) histories() *histories {
	w.t.Helper()
	c, ctx := w.client(), w.t.Context()
	h := &histories{events: map[string]int{}, bytes: map[string]int{}}
	list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "TaskQueue = '" + w.name + "'"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, flow := range list.Executions {
		id := flow.Execution.WorkflowId
		events, size := 0, 0
		all := c.GetWorkflowHistory(ctx, id, flow.Execution.RunId, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for all.HasNext() {
			event, err := all.Next()
			if err != nil {
				w.t.Fatal(err)
			}
			data, err := proto.Marshal(event)
			if err != nil {
				w.t.Fatal(err)
			}
			events, size, h.all = events+1, size+len(data), append(h.all, data...)
		}
		h.events[id], h.bytes[id] = max(h.events[id], events), max(h.bytes[id], size)
	}
	return h
}

// activities returns how many activities of each type the last workflow began.
func (w *world) activities() map[string]int {
	w.t.Helper()
	begun := map[string]int{}
	all := w.client().GetWorkflowHistory(w.t.Context(), "formetl/"+w.name, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for all.HasNext() {
		event, err := all.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if activity := event.GetActivityTaskScheduledEventAttributes(); activity != nil {
			begun[activity.ActivityType.Name]++
		}
	}
	return begun
}

// checkSecrets holds that no history holds the key or a row.
func (w *world) checkSecrets(h *histories) {
	w.t.Helper()
	for what, text := range map[string]string{"the key": canary, "a row": "row-", "the key of the store": "formetl-test-secret"} {
		if bytes.Contains(h.all, []byte(text)) {
			w.t.Errorf("%s is in a history", what)
		}
	}
	if !bytes.Contains(h.all, []byte("pipeline.yaml")) {
		w.t.Error("the histories hold nothing that was looked for")
	}
}

// year is a form with results on each day of a year.
func year(each int) *formservice.Form {
	form := january("year", 0)
	fill(form, 2025, 365, each)
	return form
}

// TestHistoryOfAYear runs a year of daily windows. It also holds that no payload is a secret.
func TestHistoryOfAYear(t *testing.T) {
	w := newWorld(t, settings{concurrency: 8, extract: "from: 2025-01-01, to: 2026-01-01, window: 1d"}, year(110))
	w.worker()
	if code := w.workflow("--wait").code(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	w.check(w.forms...)
	h := w.histories()
	for id, events := range h.events {
		t.Logf("%s: %d events, %d bytes", id, events, h.bytes[id])
		if events > 100 || h.bytes[id] > 1<<20 {
			t.Errorf("%s is too long", id)
		}
	}
	w.checkSecrets(h)
}
