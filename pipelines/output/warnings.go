package output

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/formetl/formetl/load"
)

// warnings are what the encoders of an output had to say of its objects
// (load.Warner), by the windows that an object is of: a part that is made again
// replaces what was said of it.
type warnings struct {
	mu sync.Mutex
	of map[string][]string
}

// add keeps what was said of an object of the windows.
func (w *warnings) add(span string, said []string) {
	if w == nil || len(said) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string][]string{}
	}
	w.of[span] = append(w.of[span], said...)
}

// list gives all, in order of the windows, with their names where dataset.
func (w *warnings) list(dataset bool) []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, span := range slices.Sorted(maps.Keys(w.of)) {
		for _, said := range w.of[span] {
			if dataset {
				said = fmt.Sprintf("part %s: %s", span, said)
			}
			all = append(all, said)
		}
	}
	return all
}

// told are the warnings of the output, for its report.
func (e encoding) told() []string { return e.warned.list(e.out.Dataset()) }

// tellWarnings logs what a committed output's encoders had to say, and gives it.
func (j *Job) tellWarnings(ctx context.Context, t *target) []string {
	o, ok := t.out.(interface{ told() []string })
	if !ok {
		return nil
	}
	list := o.told()
	for _, said := range list {
		j.Log.LogAttrs(ctx, slog.LevelWarn, "a spreadsheet does not show the output as it is", slog.String("path", t.report.Path), slog.String("reason", said))
	}
	return list
}

// warningsOf are those of an encoder that was closed.
func warningsOf(e load.Encoder) []string {
	if w, ok := e.(load.Warner); ok {
		return w.Warnings()
	}
	return nil
}
