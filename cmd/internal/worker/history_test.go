package worker_test

import (
	"bytes"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
)

func (w *world) client() client.Client {
	w.t.Helper()
	c, err := client.Dial(client.Options{HostPort: w.temporal})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// histories are all events that the server keeps of the world's workflows.
func (w *world) histories() (all []byte) {
	w.t.Helper()
	c, ctx := w.client(), w.t.Context()
	list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "TaskQueue = '" + w.name + "'"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, flow := range list.Executions {
		history := c.GetWorkflowHistory(ctx, flow.Execution.WorkflowId, flow.Execution.RunId, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			if err != nil {
				w.t.Fatal(err)
			}
			data, err := proto.Marshal(event)
			if err != nil {
				w.t.Fatal(err)
			}
			all = append(all, data...)
		}
	}
	return all
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
func (w *world) checkSecrets() {
	w.t.Helper()
	all := w.histories()
	for what, text := range map[string]string{"the key": canary, "a row": "row-", "the key of the store": "formetl-test-secret"} {
		if bytes.Contains(all, []byte(text)) {
			w.t.Errorf("%s is in a history", what)
		}
	}
	if !bytes.Contains(all, []byte("pipeline.yaml")) {
		w.t.Error("the histories hold nothing that was looked for")
	}
}
