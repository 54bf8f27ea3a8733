package formservice

import (
	"math"
	"strconv"
	"time"
)

// disturb changes the form of a request for results or a count, as the Every
// faults ask. What is changed is decided by the seed and the number of such
// requests so far.
func (s *Server) disturb(req *Request, faults *faults) {
	if req.Transaction != TransactionResults && req.Transaction != TransactionCount {
		return
	}
	s.mu.Lock()
	s.log.data++
	n := s.log.data
	s.mu.Unlock()
	form := s.Form(req.Form)
	if form == nil {
		return
	}
	for i, change := range []struct {
		every string
		do    func(hash uint64)
	}{{"insert-every", form.insertAny}, {"edit-every", form.editAny}, {"delete-every", form.deleteAny}} {
		if every := faults.number(change.every); every > 0 && n%every == 0 {
			change.do(mix(mix(faults.seed(), uint64(101+i)), uint64(n)))
		}
	}
}

// span is the range of dates that changes keep to: that of the
// generated results, or the one of the given ones, at least a second.
func (f *Form) span() (from, to int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if g := f.stored.generated; g != nil {
		return g.from, g.to
	}
	from, to = math.MaxInt64, math.MinInt64
	for _, r := range f.stored.records {
		if r.date != never {
			from, to = min(from, r.date), max(to, r.date+1)
		}
	}
	if from > to { // no result has a date
		from = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		to = from + daySize
	}
	return from, to
}

// any returns a copy of a result that passes want, nil if there is none among many.
func (f *Form) any(h uint64, want func(Result) bool) *Result {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n := uint64(len(f.stored.records))
	for i := range min(n, 2000) {
		if r := f.stored.result(f.stored.records[(h%n+i)%n]); want(r) {
			r = r.Clone()
			return &r
		}
	}
	return nil
}

// insertAny adds a result with a new id, somewhere in the last tenth of the
// range, like one that was just submitted.
func (f *Form) insertAny(h uint64) {
	from, to := f.span()
	finish := to - 1 - int64(h%uint64(max((to-from)/10, 1)))
	r := Result{Metas: []Meta{{metaStatus, "Complete"}, {metaStart, wallText(max(finish-60, from))}, {metaFinish, wallText(finish)}}}
	for _, it := range f.Items[:min(3, len(f.Items))] {
		r.Items = append(r.Items, Answer{it.ID, it.Type, it.Index, []string{"inserted " + strconv.FormatUint(h%1000, 10)}})
	}
	_, _ = f.Insert(r) // the id is new
}

// editAny changes the first answer of a result. Its date_finish stays, and its
// date_update is, without a clock, the last second of the range.
func (f *Form) editAny(h uint64) {
	r := f.any(h, func(r Result) bool { return len(r.Items) > 0 })
	if r == nil {
		return
	}
	_, to := f.span()
	r.SetMeta(metaUpdate, wallText(to-1)) // which a clock changes
	r.Items[0].Values = []string{"edited " + strconv.FormatUint(h%1000, 10)}
	_ = f.Update(*r) // it exists
}

func (f *Form) deleteAny(h uint64) {
	if r := f.any(h, func(Result) bool { return true }); r != nil {
		f.Delete(r.ID)
	}
}
