package definition

import (
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
)

func (r *reader) readExtract(v strictyaml.Value) {
	x := &r.def.Extract
	v.Section(
		strictyaml.Optional("from", func(v strictyaml.Value) { x.From = readDate(v) }),
		strictyaml.Optional("to", func(v strictyaml.Value) { r.to = v; x.To = readDate(v) }),
		strictyaml.Optional("settle", func(v strictyaml.Value) { keepSpan(v, &x.Settle) }),
		strictyaml.Optional("window", func(v strictyaml.Value) {
			if text, ok := v.Text(); ok {
				step, err := ParseWindow(text)
				if err != nil {
					v.FailWith(err, "")
				}
				x.Window = step
			}
		}),
		strictyaml.Optional("mode", func(v strictyaml.Value) {
			word, _ := v.OneOf("full", "incremental")
			x.Incremental = word == "incremental"
		}),
		strictyaml.Optional("lookback", func(v strictyaml.Value) { keepSpan(v, &x.Lookback) }),
		strictyaml.Optional("view", func(v strictyaml.Value) { x.View, _ = v.Text() }),
		strictyaml.Optional("custom_labels", func(v strictyaml.Value) { x.CustomLabels, _ = v.Text() }),
		strictyaml.Optional("search", func(v strictyaml.Value) { readSearch(v, &x.Search) }),
		strictyaml.Optional("verify", func(v strictyaml.Value) {
			if on, ok := v.Boolean(); ok {
				x.Verify = on
			}
		}),
	)
}

func keepSpan(v strictyaml.Value, target *time.Duration) {
	if d, ok := readSpan(v, 0, maxSpan); ok {
		*target = d
	}
}

func readDate(v strictyaml.Value) time.Time {
	text, ok := v.Text()
	if !ok {
		return time.Time{}
	}
	t, err := ParseWallTime(text)
	if err != nil {
		v.FailWith(err, "")
		return time.Time{}
	}
	return t
}

// checkRange reports a range that is empty.
func (r *reader) checkRange() {
	from, to := r.def.Extract.From, r.def.Extract.To
	if from.IsZero() || to.IsZero() || to.After(from) {
		return
	}
	r.to.Fail("write a later `to`; it is exclusive: the day after the last day that is wanted",
		"the range is empty: `to` (%s) is not after `from` (%s)", to.Format(extract.WireTime), from.Format(extract.WireTime))
}

func readSearch(v strictyaml.Value, s *extract.Search) {
	v.Section(
		strictyaml.Optional("match", func(v strictyaml.Value) {
			word, _ := v.OneOf("and", "or")
			s.Any = word == "or"
		}),
		strictyaml.Required("where", func(v strictyaml.Value) {
			seen := map[[2]string]strictyaml.Value{}
			for _, e := range v.List() {
				c, ok := readCriterion(e)
				if !ok {
					continue
				}
				id := [2]string{string(c.Operator), c.Column}
				if first, twice := seen[id]; twice {
					e.Fail("keep one of them, or use another operator",
						"the search asks %s of column %s twice, first on line %d: the service takes one search parameter per search type and id (specification 4.5, rule 2)", c.Operator, strictyaml.Quote(c.Column), first.Line())
					continue
				}
				seen[id] = e
				s.Where = append(s.Where, c)
			}
		}),
	)
}

// readCriterion reads one condition of a search: {column: ID, OPERATOR: TERM}.
func readCriterion(v strictyaml.Value) (extract.Criterion, bool) {
	var c extract.Criterion
	operators, good := 0, true
	term := func(op extract.Operator) strictyaml.Field {
		return strictyaml.Optional(string(op), func(v strictyaml.Value) {
			operators++
			c.Operator = op
			var ok bool
			if c.Term, ok = v.Text(); !ok {
				good = false
			}
		})
	}
	presence := func(op extract.Operator) strictyaml.Field {
		return strictyaml.Optional(string(op), func(v strictyaml.Value) {
			operators++
			c.Operator = op
			if on, ok := v.Boolean(); !ok {
				good = false
			} else if !on {
				good = false
				v.Fail("write "+string(op)+": true, or use "+opposite(op)+": true", "the operator is either there or not; false says nothing")
			}
		})
	}
	values := v.Section(
		strictyaml.Required("column", func(v strictyaml.Value) { c.Column, _ = v.Text() }),
		term(extract.OpEquals), term(extract.OpContains), term(extract.OpBegins), term(extract.OpEnds),
		presence(extract.OpEmpty), presence(extract.OpNotEmpty),
	)
	if values != nil && operators != 1 {
		v.Fail("write one of equals, contains, begins, ends, empty, not_empty; several conditions are several entries",
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
