package pipelines

import (
	"context"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

// verify compares what was read with Get Results Count. One count over the
// range says whether all is well: usually it is. If not, halves are counted
// until the windows that changed are found; those are read again. A form that
// changes all the time may never agree to the one: in the end a window agrees
// when what was read of it lies between its counts before and after.
func (f *formRun) verify(ctx context.Context) error {
	switch {
	case f.filtered():
		return f.unverified("not applicable: counts know neither searches nor views")
	case !f.verifies():
		return f.unverified("not asked for")
	}
	v := &verification{f: f, before: f.plan.Total, last: f.plan.Total, own: extract.Unknown}
	for round := 0; ; round++ {
		if err := v.settle(ctx); err != nil {
			return err
		}
		if err := v.undated(ctx); err != nil {
			return err
		}
		read := f.reads
		if err := f.verifyOlder(ctx); err != nil {
			return err
		}
		if f.reads == read || round == rereads {
			break // or what was read for them is to agree too
		}
	}
	if err := v.countOwn(ctx); err != nil {
		return err
	}
	f.ownCounted = v.own
	f.report.Verified = &load.Verified{Counted: v.after, Extracted: v.extracted(), Match: v.after == v.extracted()}
	f.at(pointVerified)
	return nil
}

// verifies tells whether counts are to vouch for what is read: it was asked for
// now, or by the run whose checkpoint is taken over, which read in that trust.
func (f *formRun) verifies() bool {
	return !f.filtered() && (f.def.Extract.Verify || f.left != nil && f.left.Trusted)
}

func (f *formRun) unverified(why string) error {
	f.report.Verified = &load.Verified{Extracted: extractedOf(f.dated()), Reason: why}
	return nil
}

// settle reads windows again until they agree with their counts, each at most
// so often, or changes too fast for that.
func (v *verification) settle(ctx context.Context) error {
	for round := 0; round < mostRounds; round++ {
		agrees, err := v.whole(ctx)
		if err != nil || agrees {
			return err
		}
		changed, err := v.changed(ctx)
		if err != nil {
			return err
		}
		if v.thorough && len(changed) == 0 {
			return nil
		}
		again, wrong := v.judge(changed, round == mostRounds-1)
		if len(wrong) > 0 {
			return &VerifyError{Counted: v.after, Extracted: v.extracted(), Windows: spans(wrong)}
		}
		if len(again) == 0 && len(changed) > 0 {
			return v.endUnsettled(changed)
		}
		if err := v.f.readChanged(ctx, again); err != nil {
			return err
		}
	}
	return v.endUnsettled(v.f.dated())
}

// endUnsettled ends a verification whose counts never agreed to the one: it
// passes where the whole range is plausible.
func (v *verification) endUnsettled(changed []*windowRun) error {
	if v.plausible() {
		return nil
	}
	return &VerifyError{Counted: v.after, Extracted: v.extracted(), Windows: spans(changed)}
}

// judge divides the windows that changed into those that are to be read again
// and, among those that were often enough, or may not be any more, the ones
// whose results do not lie between their counts. A window that was counted
// once has no count of before: the whole run's stand for it.
func (v *verification) judge(changed []*windowRun, final bool) (again, wrong []*windowRun) {
	n := v.extracted()
	whole := min(v.before, v.after) <= n && n <= max(v.before, v.after)
	plausible := func(w *windowRun) bool { return w.plausible() || len(w.counts) < 2 && whole }
	for _, w := range changed {
		w.disagreed++
		switch {
		case w.disagreed <= rereads && !final:
			again = append(again, w)
		case !plausible(w):
			wrong = append(wrong, w)
		}
	}
	return again, wrong
}

// plausible tells whether what was read of the whole range lies between its
// counts before and after, give or take as many as those differ by: so many
// results came or went. Where they agree, results only moved, and none may be
// missing.
func (v *verification) plausible() bool {
	n, least, most := v.extracted(), min(v.before, v.after), max(v.before, v.after)
	return least-(most-least) <= n && n <= most+(most-least)
}

// readChanged reads windows again that do not agree with their counts.
func (f *formRun) readChanged(ctx context.Context, changed []*windowRun) error {
	f.reader.Trust(false) // its pages may be shorter than specified
	if err := f.readAgain(ctx, changed, "the service counts otherwise"); err != nil {
		return err
	}
	return f.settleDuplicates(ctx)
}

// verification compares one run with counts.
type verification struct {
	f             *formRun
	before, after int64 // counts over the range before and after the reading
	last          int64 // the count of the round before
	// thorough is set where the range's count changed since the round before:
	// then a result that was missed and one that went may make up for each
	// other, and what agrees as a whole is compared part by part.
	thorough bool
	own      int64 // count over the range that was asked for, extract.Unknown where it was not asked
}

// dated are the windows of the run's range; counts over it leave undated results
// out.
func (f *formRun) dated() []*windowRun {
	return slices.DeleteFunc(slices.Clone(f.windows), func(w *windowRun) bool { return w.undated != nil || w.older != nil })
}

func extractedOf(ws []*windowRun) int64 {
	var n int64
	for _, w := range ws {
		n += w.extracted()
	}
	return n
}

func (v *verification) extracted() int64 { return extractedOf(v.f.dated()) }

// whole counts the range once more. The run agrees if that is what was read
// and what was counted before.
func (v *verification) whole(ctx context.Context) (bool, error) {
	n, err := v.f.counter()(ctx, v.f.iv.Read)
	if err != nil {
		return false, err
	}
	if v.before == extract.Unknown { // nothing was counted for the plan
		v.before, v.last = n, n
	}
	v.thorough = n != v.last
	v.after, v.last, v.own = n, n, extract.Unknown
	if n != v.extracted() || v.thorough {
		return false, nil
	}
	err = v.countOwn(ctx)
	return v.own == extract.Unknown || v.own == extractedOf(v.ownWindows()), err
}

// countOwn counts the range that was asked for, once a round, where datasets
// widened it: a single file's manifest is about that alone.
func (v *verification) countOwn(ctx context.Context) error {
	f := v.f
	if v.own != extract.Unknown || f.iv.Asked == f.iv.Read || !f.hasFiles() {
		return nil
	}
	n, err := f.counter()(ctx, f.iv.Asked)
	v.own = n
	return err
}

// ownWindows are the windows of time of the range that was asked for.
func (v *verification) ownWindows() []*windowRun {
	return slices.DeleteFunc(slices.Clone(v.f.ownWindows()), func(w *windowRun) bool { return w.undated != nil })
}

// changed finds the windows that do not agree with their counts by halving
// the list of windows.
func (v *verification) changed(ctx context.Context) ([]*windowRun, error) {
	windows, counted := v.f.dated(), v.after
	if v.own != extract.Unknown { // the whole range agrees
		windows, counted = v.ownWindows(), v.own
	}
	found, err := v.halve(ctx, windows, counted, true)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	v.f.log.LogAttrs(ctx, slog.LevelWarn, "the count does not agree",
		slog.Int64("counted", counted), slog.Int64("extracted", extractedOf(windows)), slog.Int("windows", len(found)))
	return found, nil
}

// halve looks for the windows that changed among ws, which hold so many
// results by the counts. The count of an upper half is what others leave, and
// a form may change between two counts: exact tells that it was asked for.
func (v *verification) halve(ctx context.Context, ws []*windowRun, counted int64, exact bool) ([]*windowRun, error) {
	if len(ws) == 0 || v.agree(ws, counted) {
		return nil, nil
	}
	if len(ws) == 1 {
		w := ws[0]
		if !exact {
			var err error
			if counted, err = v.f.counter()(ctx, w.planned.Window); err != nil {
				return nil, err
			}
		}
		w.counted(counted)
		if w.extracted() == counted {
			return nil, nil
		}
		return ws, nil
	}
	if v.thorough && v.blind(ws) {
		return v.countEach(ctx, ws)
	}
	lower, upper := ws[:len(ws)/2], ws[len(ws)/2:]
	n, err := v.f.counter()(ctx, extract.Window{From: lower[0].planned.Window.From, To: lower[len(lower)-1].planned.Window.To})
	if err != nil {
		return nil, err
	}
	found, err := v.halve(ctx, lower, n, true)
	if err != nil {
		return nil, err
	}
	more, err := v.halve(ctx, upper, counted-n, false)
	return append(found[:len(found):len(found)], more...), err
}

// agree tells whether windows need no closer look: what was read is what is
// counted, and, where results came and went, what was counted before.
func (v *verification) agree(ws []*windowRun, counted int64) bool {
	return extractedOf(ws) == counted && (!v.thorough || v.countedBefore(ws) == counted)
}

// countedBefore is what the windows held by the counts so far, extract.Unknown
// where neither they nor the planner's groups that they make up were counted.
func (v *verification) countedBefore(ws []*windowRun) int64 {
	var sum int64
	for i := 0; i < len(ws); {
		if n := len(ws[i].counts); n > 0 {
			sum += ws[i].counts[n-1]
			i++
			continue
		}
		group := ws[i].group
		size := len(group.windows)
		if size == 0 || size > len(ws)-i || !slices.Equal(group.windows, ws[i:i+size]) {
			return extract.Unknown
		}
		sum += group.count
		i += size
	}
	return sum
}

// blind tells whether no half of the windows can agree, because nothing of
// them was counted before.
func (v *verification) blind(ws []*windowRun) bool {
	for _, w := range ws {
		if len(w.counts) > 0 || len(w.group.windows) < len(ws) {
			return false
		}
	}
	return true
}

// countEach counts window by window, side by side.
func (v *verification) countEach(ctx context.Context, ws []*windowRun) ([]*windowRun, error) {
	counts := make([]int64, len(ws))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(v.f.def.Source.Requests.Concurrency)
	for i, w := range ws {
		group.Go(func() (err error) {
			counts[i], err = v.f.counter()(ctx, w.planned.Window)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var changed []*windowRun
	for i, w := range ws {
		w.counted(counts[i])
		if w.extracted() != counts[i] {
			changed = append(changed, w)
		}
	}
	return changed, nil
}

// undated compares the results without a date with their count. It asks again
// only where the count that they were found by does not agree. Then results
// have come, gone, or got their date: their windows are looked at first, as
// what those hold is not undated.
func (v *verification) undated(ctx context.Context) error {
	f := v.f
	w := f.undatedWindow()
	if w == nil || w.undated.only != nil || w.extracted() == w.counts[0] {
		return nil
	}
	for round := 0; ; round++ {
		total, n, err := f.countUndated(ctx)
		if err != nil {
			return err
		}
		w.counted(n)
		switch {
		case w.extracted() == n:
			return nil
		case round == rereads && w.plausible():
			return nil
		case round == rereads:
			return &VerifyError{Counted: n, Extracted: w.extracted(), Undated: true}
		}
		if err := v.settle(ctx); err != nil {
			return err
		}
		if w.undated.ranges, err = extract.UndatedRanges(ctx, f.client, f.form, total, n); err != nil {
			return err
		}
		if err := f.readChanged(ctx, []*windowRun{w}); err != nil {
			return err
		}
	}
}

// countUndated counts the results that no window can give: all of them less
// those up to the range's end and those from there on. It asks once more than
// Client.CountUndated, and agrees with the windows whatever the service does
// with results before 1970 and with undated ones where only an upper bound is
// given.
func (f *formRun) countUndated(ctx context.Context) (total, undated int64, err error) {
	undated = 0
	for i, w := range []extract.Window{{}, {To: f.iv.Read.To}, {From: f.iv.Read.To}} {
		n, err := f.counter()(ctx, w)
		if err != nil {
			return 0, 0, err
		}
		if i == 0 {
			total, undated = n, n
		} else {
			undated -= n
		}
	}
	return total, max(0, undated), nil
}

// verified is what a manifest says that holds these windows: of the range that
// was asked for, or of the widened one.
func (f *formRun) verified(windows []*windowRun, own bool) load.Verified {
	v := *f.report.Verified
	v.Extracted = extractedOf(windows)
	if v.Reason != "" {
		return v
	}
	if own && f.iv.Asked != f.iv.Read {
		v.Counted = f.ownCounted
	}
	if !own {
		v.Counted += f.olderCounted()
	}
	if n := len(windows); n > 0 && windows[n-1].undated != nil {
		v.Counted += windows[n-1].vouched()
	}
	v.Match = v.Counted == v.Extracted
	return v
}

// vouched is how many results the service counts without a date; those that
// were asked for by their ids are not counted.
func (w *windowRun) vouched() int64 {
	if w.undated.only != nil {
		return w.extracted()
	}
	return w.counts[len(w.counts)-1]
}

func spans(ws []*windowRun) []extract.Window {
	out := make([]extract.Window, 0, len(ws))
	for _, w := range ws {
		out = append(out, w.planned.Window)
	}
	return out
}
