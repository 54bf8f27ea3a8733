package pipelines

import "github.com/RoaringBitmap/roaring/v2/roaring64"

// common are the readings of windows that can be taken over.
type common struct {
	targets []*target // of the sets
	sets    []*datasetOutput
	taken   []map[*datasetPart][]reading // of the parts in the journal of each set
	chosen  map[*windowRun]reading
	spooled map[*windowRun]spooledWindow // those whose rows are in the spool
}

// choose finds the windows that can be taken over. What the spool holds of
// others is removed.
func (f *formRun) choose(c *common, spooled map[*windowRun]spooledWindow) error {
	c.chosen, c.spooled = c.agreed(), map[*windowRun]spooledWindow{}
	for w, s := range spooled {
		r, err := s.reading()
		r.seen = s.seen
		if there, ok := c.chosen[w]; err != nil || ok && newer(there, r) {
			if err := f.dropSpooled(s); err != nil {
				return err
			}
			continue
		}
		c.chosen[w], c.spooled[w] = r, s
	}
	dropDoubles(c.chosen)
	c.dropHalves()
	for w, s := range c.spooled {
		if _, ok := c.chosen[w]; ok {
			continue
		}
		delete(c.spooled, w)
		if err := f.dropSpooled(s); err != nil {
			return err
		}
	}
	return nil
}

// agreed are the readings that the journals of all sets agree on.
func (c *common) agreed() map[*windowRun]reading {
	chosen := map[*windowRun]reading{}
	votes := map[*windowRun]int{}
	for i := range c.sets {
		for p, list := range c.taken[i] {
			for k, w := range p.windows {
				if r, ok := chosen[w]; !ok || r.same(list[k]) {
					chosen[w] = list[k]
					votes[w]++
				}
			}
		}
	}
	for w := range chosen {
		if votes[w] < len(c.sets) {
			delete(chosen, w)
		}
	}
	return chosen
}

// prepared tells whether a part of a set stays as it was prepared.
func (c *common) prepared(set int, p *datasetPart) bool {
	list, ok := c.taken[set][p]
	for k := 0; ok && k < len(list); k++ {
		var r reading
		r, ok = c.chosen[p.windows[k]]
		ok = ok && r.same(list[k])
	}
	return ok
}

// dropHalves leaves out windows that are not in the spool and whose part has
// to be encoded again: it is taken over whole, in every output.
func (c *common) dropHalves() {
	for removed := true; removed; {
		removed = false
		for i, d := range c.sets {
			for _, p := range d.list {
				if c.prepared(i, p) {
					continue
				}
				for _, w := range p.windows {
					_, there := c.chosen[w]
					if _, ok := c.spooled[w]; there && !ok {
						removed = true
						delete(c.chosen, w)
					}
				}
			}
		}
	}
}

// dropDoubles leaves out readings that share ids with others: which of two
// windows holds a result now, only another reading can tell.
func dropDoubles(chosen map[*windowRun]reading) {
	seen, twice := roaring64.New(), roaring64.New()
	for _, r := range chosen {
		twice.Or(roaring64.And(seen, r.ids))
		seen.Or(r.ids)
	}
	if twice.IsEmpty() {
		return
	}
	for w, r := range chosen {
		if r.ids.Intersects(twice) {
			delete(chosen, w)
		}
	}
}
