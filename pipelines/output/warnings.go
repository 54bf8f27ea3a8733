package output

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// warnings are what the encoders of an output had to say of its objects
// (load.Warner), by the windows that an object is of.
type warnings struct {
	mu sync.Mutex
	of map[string][]string
}

// add keeps what was said of an object of the windows.
func (w *warnings) add(span string, said []string) {
	if len(said) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string][]string{}
	}
	w.of[span] = append(w.of[span], said...)
}

// tellWarnings logs what the encoders of a committed output had to say, in order of the
// windows, and gives it. The parts of a dataset are named.
func (p *place) tellWarnings(ctx context.Context) (all []string) {
	for _, span := range slices.Sorted(maps.Keys(p.warned.of)) {
		for _, said := range p.warned.of[span] {
			if p.out.Dataset() {
				said = fmt.Sprintf("part %s: %s", span, said)
			}
			all = append(all, said)
			p.job.Log.LogAttrs(ctx, slog.LevelWarn, "a spreadsheet does not show the output as it is", slog.String("path", p.Path), slog.String("reason", said))
		}
	}
	return all
}
