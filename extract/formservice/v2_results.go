package formservice

import (
	"encoding/json"
	"strconv"
)

// otherLabel is the label of the choice whose text is typed.
const otherLabel = "Other"

// answers writes results of one form.
type answers struct {
	*jsonCall
	all     questions
	columns []string // of the view; nil: all
}

// result writes one result. One in eight has its items before its metas, since
// the members of an object have no order.
func (a *answers) result(r Result) {
	a.w.open('{')
	if r.ID%8 == 7 {
		a.items(r)
		a.metas(r)
	} else {
		a.metas(r)
		a.items(r)
	}
	a.w.close('}')
}

// metas writes the id and the metas that there are, as flat members.
func (a *answers) metas(r Result) {
	if a.faults.on("v2-number-ids") {
		a.w.numberMember(byID, r.ID)
	} else {
		a.w.member(byID, strconv.FormatInt(r.ID, 10))
	}
	for _, m := range r.Metas {
		if !shown(a.columns, m.ID) {
			continue
		}
		value, ok := a.meta(r.ID, m)
		switch {
		case !ok:
		case a.faults.on("v2-number-metas") && (m.ID == "payment_amount" || m.ID == "score") && isNumber(value):
			a.w.key(m.ID)
			a.w.buf = append(a.w.buf, value...)
		default:
			a.w.member(m.ID, value)
		}
	}
}

func isDate(meta string) bool { return meta == metaStart || meta == metaFinish || meta == metaUpdate }

// meta is a meta's value in this generation; ok is false where there is none.
func (c *jsonCall) meta(id int64, m Meta) (value string, ok bool) {
	switch {
	case isDate(m.ID):
		return c.clock.date(id, m.Value)
	case m.ID == metaStatus && m.Value == "Confirmed":
		return "Complete", true
	case m.ID == metaStatus && m.Value == "Unconfirmed":
		return "Incomplete", true
	}
	return m.Value, true
}

func isNumber(value string) bool {
	return value != "" && (value[0] == '-' || value[0] >= '0' && value[0] <= '9') && json.Valid([]byte(value))
}

// items writes the answers of a result, each item once.
func (a *answers) items(r Result) {
	a.w.key("items")
	a.w.open('[')
	for _, answer := range r.once() {
		it := a.all.of(answer)
		if shown(a.columns, it.ID) && (len(answer.Values) > 0 || several(it.Type)) {
			a.answer(r.ID, it, answer.Values)
		}
	}
	a.w.close(']')
}

// answer writes one item with its value or its values.
func (a *answers) answer(id int64, it Item, values []string) {
	if len(values) == 1 && values[0] == "" {
		values = nil
	}
	content := func() {
		if len(it.Choices) > 0 || it.Type == "file" || several(it.Type) || len(values) > 1 {
			a.w.key("values")
			a.values(id, it, values)
			return
		}
		value := ""
		if len(values) == 1 {
			value = values[0]
		}
		a.w.member("value", value)
	}
	a.w.open('{')
	if id%8 == 1 {
		content()
	}
	a.w.member("id", it.ID)
	a.w.numberMember("position", int64(it.Index))
	if id%8 != 1 {
		content()
	}
	a.w.close('}')
}

// values writes the values of an answer, each with its place: among the
// choices or, where there are none to choose from, in the answer.
func (a *answers) values(id int64, it Item, values []string) {
	a.w.open('[')
	for i := range values {
		if a.faults.on("v2-mix-values") && id%2 != 0 {
			i = len(values) - 1 - i
		}
		value, position, other := values[i], i, false
		if len(it.Choices) > 0 {
			position, other = it.position(value)
		}
		a.w.open('{')
		if other && value != "" {
			a.w.member("other", value)
			value = otherLabel
		}
		if id%2 == 0 {
			a.w.numberMember("position", int64(position))
			a.w.member("value", value)
		} else {
			a.w.member("value", value)
			a.w.numberMember("position", int64(position))
		}
		a.w.close('}')
	}
	a.w.close(']')
}
