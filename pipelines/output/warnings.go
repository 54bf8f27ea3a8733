package output

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// warnings are what an output's encoders (load.Warner) reported about its
// objects. The key is the span of an object's windows.
type warnings struct {
	mu sync.Mutex
	of map[string][]string
}

// add keeps the warnings about an object. span is the span of its windows.
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

// drop forgets the warnings about the objects of a span.
func (w *warnings) drop(span string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, span)
}

// tellWarnings logs and returns the warnings of a committed output's encoders,
// in the order of the windows. For a dataset each warning names its part.
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
