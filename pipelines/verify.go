package pipelines

import (
	"context"
	"log/slog"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// verify compares what was read with Get Results Count. One count over the
// range says whether all is well: usually it is. If not, halves are counted
// until the windows that changed are found; those are read again.
func (f *formRun) verify(ctx context.Context) error {
	switch {
	case !f.def.Extract.Verify:
		return f.unverified("not asked for")
	case f.filtered():
		return f.unverified("not applicable: counts know neither searches nor views")
	}
	v := &verification{f: f, before: f.plan.Total}
	for round := 0; ; round++ {
		agrees, err := v.whole(ctx)
		if err != nil {
			return err
		}
		if agrees {
			break
		}
		changed, err := v.changed(ctx)
		if err != nil {
			return err
		}
		if round == rereads {
			if v.plausible() {
				break
			}
			return &VerifyError{Counted: v.after, Extracted: v.extracted(), Windows: spans(changed)}
		}
		if err := f.readAgain(ctx, changed, "the service counts otherwise"); err != nil {
			return err
		}
		if err := f.settleDuplicates(ctx); err != nil {
			return err
		}
	}
	f.report.Verified = &load.Verified{Counted: v.after, Extracted: v.extracted(), Match: true}
	return nil
}

func (f *formRun) unverified(why string) error {
	n := extractedOf(f.dated())
	f.report.Verified = &load.Verified{Extracted: n, Reason: why}
	return nil
}

// verification compares one run with counts.
type verification struct {
	f             *formRun
	before, after int64 // counts over the range before and after the reading
}

// dated are the windows of time; counts over a range leave undated results out.
func (f *formRun) dated() []*windowRun {
	var ws []*windowRun
	for _, w := range f.windows {
		if !w.isUndated() {
			ws = append(ws, w)
		}
	}
	return ws
}

func extractedOf(ws []*windowRun) int64 {
	var n int64
	for _, w := range ws {
		n += w.extracted()
	}
	return n
}

func (v *verification) extracted() int64 { return extractedOf(v.f.dated()) }

// whole counts the range once more. The run agrees if that is what was read.
func (v *verification) whole(ctx context.Context) (bool, error) {
	n, err := v.f.counter()(ctx, v.f.rng)
	if err != nil {
		return false, err
	}
	v.after = n
	return n == v.extracted(), nil
}

// plausible tells whether what was read lies between the counts before and
// after: a form that changes while it is read may never agree to the one.
func (v *verification) plausible() bool {
	n := v.extracted()
	return min(v.before, v.after) <= n && n <= max(v.before, v.after)
}

// changed finds the windows that do not agree with their counts by halving
// the list of windows.
func (v *verification) changed(ctx context.Context) ([]*windowRun, error) {
	found, err := v.halve(ctx, v.f.dated(), v.after)
	if err != nil {
		return nil, err
	}
	v.f.log.LogAttrs(ctx, slog.LevelWarn, "the count does not agree",
		slog.Int64("counted", v.after), slog.Int64("extracted", v.extracted()), slog.Int("windows", len(found)))
	return found, nil
}

func (v *verification) halve(ctx context.Context, ws []*windowRun, counted int64) ([]*windowRun, error) {
	if len(ws) == 0 {
		return nil, nil
	}
	if len(ws) == 1 {
		if ws[0].extracted() == counted {
			return nil, nil
		}
		return ws, nil
	}
	lower, upper := ws[:len(ws)/2], ws[len(ws)/2:]
	n, err := v.f.counter()(ctx, extract.Window{From: lower[0].planned.Window.From, To: lower[len(lower)-1].planned.Window.To})
	if err != nil {
		return nil, err
	}
	var found []*windowRun
	for _, half := range []struct {
		ws []*windowRun
		n  int64
	}{{lower, n}, {upper, counted - n}} {
		if extractedOf(half.ws) == half.n {
			continue
		}
		more, err := v.halve(ctx, half.ws, half.n)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func spans(ws []*windowRun) []extract.Window {
	out := make([]extract.Window, 0, len(ws))
	for _, w := range ws {
		out = append(out, w.planned.Window)
	}
	return out
}
