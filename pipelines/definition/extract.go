package definition

import (
	"cmp"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
)

func (r *reader) readExtract(v value) {
	x := &r.def.Extract
	var span Range
	values := v.Section(
		optional("from", intoParsed(&span.From, ParseBound, "")),
		optional("to", intoParsed(&span.To, ParseBound, "")),
		optional("settle", intoParsed(&x.Settle, spanWithin(0, maxSpan), "")),
		optional("window", intoParsed(&x.Window, ParseWindow, "")),
		optional("mode", intoChoice(&x.Incremental, "full", "incremental")),
		optional("lookback", intoParsed(&x.Lookback, spanWithin(0, maxSpan), "")),
		optional("changes", intoOneOf(&x.Changes, ChangesAuto, ChangesLookback)),
		optional("view", intoText(&x.View)),
		optional("custom_labels", intoText(&x.CustomLabels)),
		optional("search", func(v value) { readSearch(v, &x.Search) }),
		optional("verify", func(v value) {
			if v.Kind() != "text" {
				intoBoolean(&x.Verify)(v)
			} else if word, ok := v.OneOf("true", "false", "required"); ok {
				x.Verify, x.Proof = word != "false", word == "required"
			}
		}),
	)
	w := span.In(cmp.Or(r.def.Source.Zone, time.UTC), r.o.Now())
	x.From, x.To = w.From, w.To
	if now := load.Wall(r.o.Now().In(cmp.Or(r.def.Source.Zone, time.UTC))).Time; x.Incremental && !x.To.IsZero() && x.To.Before(now) && span.To(now.AddDate(1, 0, 0)).Equal(x.To) {
		values["to"].Warn("leave `to` out", "this time has passed, so incremental runs find nothing new")
	}
	if !x.From.IsZero() && !x.To.IsZero() && !x.To.After(x.From) {
		values["to"].Fail("write a later `to`: the day after the last day that you want",
			"the range is empty: `to` (%s) is not after `from` (%s)", x.To.Format(extract.WireTime), x.From.Format(extract.WireTime))
	}
}

func readSearch(v value, s *extract.Search) {
	v.Section(
		optional("match", intoChoice(&s.Any, "and", "or")),
		required("where", func(v value) {
			seen := map[[2]string]value{}
			for _, e := range v.List() {
				c, ok := readCriterion(e)
				if !ok {
					continue
				}
				id := [2]string{string(c.Operator), c.Column}
				if first, twice := seen[id]; twice {
					e.Fail("keep one of them, or use another operator",
						"the search uses %s on column %s twice, first on line %d, and the service takes each operator only once per column", c.Operator, Quote(c.Column), first.Line())
					continue
				}
				seen[id] = e
				s.Where = append(s.Where, c)
			}
		}),
	)
}

// readCriterion reads one condition of a search: {column: ID, OPERATOR: TERM}.
func readCriterion(v value) (c extract.Criterion, ok bool) {
	operators := []extract.Operator{extract.OpEquals, extract.OpContains, extract.OpBegins, extract.OpEnds, extract.OpEmpty, extract.OpNotEmpty}
	opposite := map[extract.Operator]extract.Operator{extract.OpEmpty: extract.OpNotEmpty, extract.OpNotEmpty: extract.OpEmpty}
	fields := append(make([]field, 0, 1+len(operators)), required("column", intoText(&c.Column)))
	for _, op := range operators {
		fields = append(fields, optional(string(op), func(v value) {
			if c.Operator = op; opposite[op] == "" {
				c.Term, ok = v.Text()
				return
			}
			on, read := v.Boolean()
			if ok = on; read && !on {
				v.Fail("write "+string(op)+": true, or use "+string(opposite[op])+": true", "false has no meaning here")
			}
		}))
	}
	values := v.Section(fields...)
	delete(values, "column") // so that values holds the operators alone
	if values != nil && len(values) != 1 {
		v.Fail("write one of equals, contains, begins, ends, empty, not_empty; for several conditions write several entries",
			"a condition has one operator, and this one has %d", len(values))
		ok = false
	}
	return c, ok && c.Column != ""
}
