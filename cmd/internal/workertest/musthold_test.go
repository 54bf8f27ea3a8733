package workertest

import (
	"time"
)

// after waits until the service has answered so many requests.
func (w *world) after(requests int, unless *program) {
	w.t.Helper()
	for {
		if len(w.service.Log()) >= requests {
			return
		}
		select {
		case <-unless.ended:
			w.t.Fatalf("the workflow ended after %d requests:\n%s", len(w.service.Log()), tail(unless.output.String()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

