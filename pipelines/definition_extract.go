package pipelines

import (
	"time"

	"github.com/formetl/formetl/extract"
)

func (r *definitionReader) readExtract(v value) {
	x := &r.def.Extract
	v.section(
		field{"from", false, func(v value) { r.from = v; x.From = readDate(v) }},
		field{"to", false, func(v value) { r.to = v; x.To = readDate(v) }},
		field{"settle", false, func(v value) { readSpan(v, &x.Settle) }},
		field{"window", false, func(v value) {
			if text, ok := v.text(); ok {
				step, err := ParseWindow(text)
				if err != nil {
					v.failWith(err, "")
				}
				x.Window = step
			}
		}},
		field{"mode", false, func(v value) {
			word, _ := v.oneOf("full", "incremental")
			r.mode, x.Incremental = v, word == "incremental"
		}},
		field{"lookback", false, func(v value) { readSpan(v, &x.Lookback) }},
		field{"view", false, func(v value) { x.View, _ = v.text() }},
		field{"custom_labels", false, func(v value) { x.CustomLabels, _ = v.text() }},
		field{"search", false, r.readSearch},
		field{"verify", false, func(v value) {
			if on, ok := v.boolean(); ok {
				x.Verify = on
			}
		}},
	)
}

func readSpan(v value, target *time.Duration) {
	if d, ok := v.span(0, maxSpan); ok {
		*target = d
	}
}

func readDate(v value) time.Time {
	text, ok := v.text()
	if !ok {
		return time.Time{}
	}
	t, err := ParseWallTime(text)
	if err != nil {
		v.failWith(err, "")
		return time.Time{}
	}
	return t
}

// checkRange reports a range that holds nothing.
func (r *definitionReader) checkRange() {
	from, to := r.def.Extract.From, r.def.Extract.To
	if from.IsZero() || to.IsZero() || to.After(from) {
		return
	}
	r.to.fail("write a later `to`; it is exclusive: the day after the last day that is wanted",
		"the range is empty: `to` (%s) is not after `from` (%s)", to.Format(extract.WireTime), from.Format(extract.WireTime))
}

func (r *definitionReader) readSearch(v value) {
	s := &r.def.Extract.Search
	v.section(
		field{"match", false, func(v value) {
			word, _ := v.oneOf("and", "or")
			s.Any = word == "or"
		}},
		field{"where", true, func(v value) {
			seen := map[[2]string]value{}
			for _, e := range v.list() {
				c, ok := readCriterion(e)
				if !ok {
					continue
				}
				id := [2]string{string(c.Operator), c.Column}
				if first, twice := seen[id]; twice {
					e.fail("keep one of them, or use another operator",
						"the search asks %s of column %s twice, first on line %s: the service takes one search parameter per search type and id (specification 4.5, rule 2)", c.Operator, show(c.Column), lineOf(first))
					continue
				}
				seen[id] = e
				s.Where = append(s.Where, c)
			}
		}},
	)
}

// readCriterion reads {column: ID, OPERATOR: TERM}.
func readCriterion(v value) (extract.Criterion, bool) {
	var c extract.Criterion
	operators, good := 0, true
	term := func(op extract.Operator) field {
		return field{string(op), false, func(v value) {
			operators++
			c.Operator = op
			var ok bool
			if c.Term, ok = v.text(); !ok {
				good = false
			}
		}}
	}
	presence := func(op extract.Operator) field {
		return field{string(op), false, func(v value) {
			operators++
			c.Operator = op
			if on, ok := v.boolean(); !ok {
				good = false
			} else if !on {
				good = false
				v.fail("write "+string(op)+": true, or use "+opposite(op)+": true", "the operator is either there or not; false says nothing")
			}
		}}
	}
	values := v.section(
		field{"column", true, func(v value) { c.Column, _ = v.text() }},
		term(extract.OpEquals), term(extract.OpContains), term(extract.OpBegins), term(extract.OpEnds),
		presence(extract.OpEmpty), presence(extract.OpNotEmpty),
	)
	if values != nil && operators != 1 {
		v.fail("write one of equals, contains, begins, ends, empty, not_empty; several conditions are several entries",
			"a condition has exactly one operator, this has %d", operators)
	}
	return c, good && operators == 1 && c.Column != ""
}

func opposite(op extract.Operator) string {
	if op == extract.OpEmpty {
		return string(extract.OpNotEmpty)
	}
	return string(extract.OpEmpty)
}
