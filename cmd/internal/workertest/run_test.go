package workertest

import "testing"

// TestWorkflow runs two forms, of which one is shared by groups, with a worker.
func TestWorkflow(t *testing.T) {
	forms := []string{"small", "large"}
	w := newWorld(t, settings{concurrency: 4}, january(forms[0], 3), january(forms[1], 250))
	worker := w.worker()
	if code := w.workflow("--wait", "--group-requests", "20").code(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	w.check(w.forms...)
	if peak := w.service.Peak(); peak > 4 {
		t.Errorf("%d requests were under way at once", peak)
	}
	t.Log(w.service.Counts(), w.service.Peak(), worker.output)
}
