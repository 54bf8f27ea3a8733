package definition

import (
	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
)

func (r *reader) readExtract(v strictyaml.Value) {
	x := &r.def.Extract
	values := v.Section(
		strictyaml.Optional("from", strictyaml.Parsed(&x.From, ParseWallTime, "")),
		strictyaml.Optional("to", strictyaml.Parsed(&x.To, ParseWallTime, "")),
		strictyaml.Optional("settle", strictyaml.Parsed(&x.Settle, spanWithin(0, maxSpan), "")),
		strictyaml.Optional("window", strictyaml.Parsed(&x.Window, ParseWindow, "")),
		strictyaml.Optional("mode", strictyaml.Choice(&x.Incremental, "full", "incremental")),
		strictyaml.Optional("lookback", strictyaml.Parsed(&x.Lookback, spanWithin(0, maxSpan), "")),
		strictyaml.Optional("changes", strictyaml.OneOf(&x.Changes, ChangesAuto, ChangesLookback)),
		strictyaml.Optional("view", strictyaml.Text(&x.View)),
		strictyaml.Optional("custom_labels", strictyaml.Text(&x.CustomLabels)),
		strictyaml.Optional("search", func(v strictyaml.Value) { readSearch(v, &x.Search) }),
		strictyaml.Optional("verify", func(v strictyaml.Value) {
			if v.Kind() != "text" {
				strictyaml.Boolean(&x.Verify)(v)
			} else if word, ok := v.OneOf("true", "false", "required"); ok {
				x.Verify, x.Proof = word != "false", word == "required"
			}
		}),
	)
	if !x.From.IsZero() && !x.To.IsZero() && !x.To.After(x.From) {
		values["to"].Fail("write a later `to`; it is exclusive: the day after the last day that is wanted",
			"the range is empty: `to` (%s) is not after `from` (%s)", x.To.Format(extract.WireTime), x.From.Format(extract.WireTime))
	}
}

func readSearch(v strictyaml.Value, s *extract.Search) {
	v.Section(
		strictyaml.Optional("match", strictyaml.Choice(&s.Any, "and", "or")),
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
func readCriterion(v strictyaml.Value) (c extract.Criterion, ok bool) {
	term := func(op extract.Operator) strictyaml.Field {
		return strictyaml.Optional(string(op), strictyaml.Text(&c.Term))
	}
	presence := func(op, opposite extract.Operator) strictyaml.Field {
		return strictyaml.Optional(string(op), func(v strictyaml.Value) {
			if on, ok := v.Boolean(); ok && !on {
				v.Fail("write "+string(op)+": true, or use "+string(opposite)+": true", "the operator is either there or not; false says nothing")
			}
		})
	}
	values := v.Section(
		strictyaml.Required("column", strictyaml.Text(&c.Column)),
		term(extract.OpEquals), term(extract.OpContains), term(extract.OpBegins), term(extract.OpEnds),
		presence(extract.OpEmpty, extract.OpNotEmpty), presence(extract.OpNotEmpty, extract.OpEmpty),
	)
	if values == nil {
		return c, false
	}
	delete(values, "column") // the operators are left
	if len(values) != 1 {
		v.Fail("write one of equals, contains, begins, ends, empty, not_empty; several conditions are several entries",
			"a condition has exactly one operator, this has %d", len(values))
		return c, false
	}
	for op := range values {
		c.Operator, ok = extract.Operator(op), !v.Refused(op) && c.Column != ""
	}
	return c, ok
}
