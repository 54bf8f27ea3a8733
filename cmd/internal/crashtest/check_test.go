package crashtest

import (
	"errors"
	"testing"
)

// sees checks that a reader sees just the rows of want; nil is nothing.
func sees(t testing.TB, reader string, r reading, err error, want rows) {
	t.Helper()
	switch {
	case want == nil && !errors.Is(err, errNothing):
		t.Errorf("%s reads %d rows of run %s, %v; there should be nothing yet", reader, len(r.rows), r.run, err)
	case want == nil:
	case err != nil:
		t.Errorf("%s: %v", reader, err)
	case !r.rows.equal(want):
		t.Errorf("%s, run %s: %s", reader, r.run, r.rows.differs(want))
	}
}

// whole checks that the output holds just the truth for every reader, and
// that nothing else is visible.
func (w *world) whole(want rows) {
	w.t.Helper()
	ctx := w.t.Context()
	r, err := w.byManifest(ctx)
	sees(w.t, "the reader of the manifest", r, err, want)
	if w.output.file == "" {
		glob, err := w.byGlob(ctx)
		sees(w.t, "the reader that globs", glob, err, want)
		if glob.run != r.run {
			w.t.Errorf("_SUCCESS is of run %q, the manifest of %q", glob.run, r.run)
		}
	}
	if strays, err := w.strays(ctx); err != nil || len(strays) > 0 {
		w.t.Errorf("strays are visible: %v, %v", strays, err)
	}
}

// clean checks that nothing is left once formetl has cleaned up, and that each
// part has its id set and its dead letters.
func (w *world) clean() {
	w.t.Helper()
	o := w.do(w.command("", "clean", w.definition()))
	if o.code != 0 {
		w.t.Errorf("clean ended with %d:\n%s", o.code, o.stderr)
	}
	if left, err := w.leftovers(w.t.Context()); err != nil || len(left) > 0 {
		w.t.Errorf("after clean there is left %v, %v", left, err)
	}
	if orphans, missing, err := w.beside(w.t.Context()); err != nil || len(orphans)+len(missing) > 0 {
		w.t.Errorf("after clean there is %v beside no part, and parts lack %v, %v", orphans, missing, err)
	}
}
