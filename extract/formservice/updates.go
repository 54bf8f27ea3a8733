package formservice

// updated returns when result n was changed last, whose dates are d and whose
// hash is h: when it was started, finished or, for one finished result in 16,
// edited. One without dates was changed within the hour after the start that
// it does not tell.
func (g *generated) updated(n int64, d dates, h uint64) int64 {
	switch {
	case g.o.NoUpdates:
		return never
	case d.start == never:
		return min(g.start(n)+int64(h>>9%soon), g.to-1)
	case d.finish == never:
		return d.start
	case h>>5%16 == 0:
		return min(d.finish+int64(h>>9%soon), g.to-1)
	}
	return d.finish
}

// updates returns the keys by date_update of the base's first results of the
// request, in no order, at most so many. Values are moments of the request,
// that of a result without one is never. Results are numbered by their starts and changed soon after, so only
// the blocks near one end of the request's bounds have to be looked at.
func (st *stored) updates(q *resultsQuery, most int) []key[int64] {
	g := st.base
	top := best[int64]{most: most, desc: q.desc}
	for b := range g.blocks(q.selection) {
		mask := ^uint64(0)
		if last, full := top.last(); full {
			wall, slack := q.wall(last)
			mask = g.updatedUpTo(b, wall, slack, q)
		}
		if mask != 0 {
			mask &= g.mask(b, q.selection) &^ st.masked[b]
		}
		for mask != 0 {
			bit := firstBit(mask, q.desc)
			mask &^= 1 << bit
			n := b*blockSize + bit
			k := key[int64]{never, g.id(n)}
			if !q.lacks(k.id) {
				k.value = q.moment(k.id, g.updated(n, g.dates(n), g.hash(saltContent, uint64(n))))
			}
			top.offer(k)
		}
	}
	return top.keys
}

// updatedUpTo tells which results of a block may not come after those of a
// date_update, known up to slack seconds, in the request's order, one bit each. A result is changed after
// its start; within two hours, or if it is late within ten days and an hour.
// Where none has a date_update, the order is that of the ids, in which blocks
// come, so that it does not matter which of the later ones are left out.
func (g *generated) updatedUpTo(block, last, slack int64, q *resultsQuery) uint64 {
	const all = ^uint64(0)
	if !q.desc {
		if q.lack == 0 && g.start(block*blockSize) > last+slack {
			return 0
		}
		return all
	}
	start := g.start(min(block*blockSize+blockSize, g.n) - 1)
	late, _, _ := g.slots(block)
	switch {
	case start+latest+soon < last-slack:
		return 0
	case start+2*soon < last-slack:
		return bit(late)
	}
	return all
}
