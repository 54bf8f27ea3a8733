package formservice

import (
	"slices"
	"strconv"
	"time"
)

// scratch is memory that results are built in, one after the other. The zero
// value is ready.
type scratch struct {
	metas  []Meta
	items  []Answer
	values []string
	text   []byte
	shown  []Meta // see scratch.without
}

// without returns the metas but for one of them; it is valid until s is used
// again.
func (s *scratch) without(metas []Meta, id string) []Meta {
	s.shown = s.shown[:0]
	for _, m := range metas {
		if m.ID != id {
			s.shown = append(s.shown, m)
		}
	}
	return s.shown
}

// result builds result n; it is valid until s is used again.
func (g *generated) result(n int64, s *scratch) Result {
	r := g.head(n, s)
	s.items, s.values = s.items[:0], s.values[:0]
	h := g.hash(saltContent, uint64(n))
	for i := range g.items {
		g.answer(&g.items[i], mix(h, uint64(i)), s)
	}
	r.Items = s.items
	return r
}

// head builds result n without its items; it is valid until s is used again.
func (g *generated) head(n int64, s *scratch) Result {
	s.metas = s.metas[:0]
	g.metas(n, g.hash(saltContent, uint64(n)), s)
	return Result{ID: g.id(n), Metas: s.metas}
}

// generatedMetas are the metas that generated results have, in order.
func generatedMetas() []string {
	return []string{
		metaStatus, "login_username", "login_email", metaStart, metaFinish, metaUpdate, "user_ip", "user_browser",
		"user_os", "user_device", "user_referrer", "payment_status", "payment_amount", "score",
	}
}

// metas appends the metas of result n, whose hash is h. A date that there is
// not is an empty meta in some results and no meta in others.
func (g *generated) metas(n int64, h uint64, s *scratch) {
	d := g.dates(n)
	status := "Complete"
	if d.finish == never {
		status = "Incomplete"
	}
	add := func(id, value string) { s.metas = append(s.metas, Meta{id, value}) }
	date := func(id string, t int64) {
		switch {
		case t != never:
			add(id, s.date(t))
		case h&1 == 0:
			add(id, "")
		}
	}
	add(metaStatus, status)
	user := pick(g.words.users, h>>3)
	add("login_username", user)
	if user == "" {
		add("login_email", "")
	} else {
		add("login_email", user+"@example.com")
	}
	date(metaStart, d.start)
	date(metaFinish, d.finish)
	if !g.o.NoUpdates {
		date(metaUpdate, g.updated(n, d, h))
	}
	add("user_ip", s.ip(h>>13))
	add("user_browser", pick(g.words.browsers, h>>7))
	add("user_os", pick(g.words.systems, h>>11))
	add("user_device", pick(g.words.devices, h>>17))
	add("user_referrer", pick(g.words.referrers, h>>19))
	add("payment_status", pick(g.words.payments, h>>23))
	add("payment_amount", s.money(h>>29%100_000))
	add("score", strconv.Itoa(int(h>>31%100)))
}

// date formats wall-clock seconds.
func (s *scratch) date(t int64) string {
	s.text = time.Unix(t, 0).UTC().AppendFormat(s.text[:0], WallTime)
	return string(s.text)
}

// dateOrNone formats wall-clock seconds, never as "".
func (s *scratch) dateOrNone(t int64) string {
	if t == never {
		return ""
	}
	return s.date(t)
}

func (s *scratch) ip(h uint64) string {
	s.text = append(s.text[:0], "198.51."...)
	s.text = strconv.AppendUint(s.text, h%256, 10)
	s.text = append(s.text, '.')
	s.text = strconv.AppendUint(s.text, h>>8%256, 10)
	return string(s.text)
}

// money formats hundredths: 1234 is "12.34".
func (s *scratch) money(cents uint64) string {
	s.text = strconv.AppendUint(s.text[:0], cents/100, 10)
	s.text = append(s.text, '.', byte('0'+cents/10%10), byte('0'+cents%10))
	return string(s.text)
}

// digits formats a number with leading zeros.
func (s *scratch) digits(n uint64, width int) string {
	s.text = strconv.AppendUint(s.text[:0], n, 10)
	for len(s.text) < width {
		s.text = append(s.text, 0)
		copy(s.text[1:], s.text)
		s.text[0] = '0'
	}
	return string(s.text)
}

// answer appends the answer to an item, if there is one: one in ten is missing
// (never that to the first item), one in twenty is empty.
func (g *generated) answer(it *Item, h uint64, s *scratch) {
	roll := h % 20
	if roll < 2 && it.Index != 1 {
		return
	}
	start := len(s.values)
	several := it.Type == "checkbox" || it.Type == "list"
	switch {
	case roll == 2 && h>>40%4 == 0:
		// an item element without a value element
	case roll == 2:
		s.values = append(s.values, "")
	case several:
		g.choices(it, h>>8, s)
	default:
		s.values = append(s.values, g.value(it, h>>8, s))
	}
	values := s.values[start:len(s.values):len(s.values)]
	if several && len(values) > 1 && h>>50%16 == 0 { // several elements of one id
		s.items = append(s.items, Answer{it.ID, it.Type, it.Index, values[:1]})
		values = values[1:]
	}
	s.items = append(s.items, Answer{it.ID, it.Type, it.Index, values})
}

// choices appends one value or several, in the order of the choices, and now
// and then a hostile one.
func (g *generated) choices(it *Item, h uint64, s *scratch) {
	first := len(s.values)
	for i, c := range it.Choices {
		if h>>i&1 == 1 {
			s.values = append(s.values, c)
		}
	}
	if len(s.values) == first {
		s.values = append(s.values, it.Choices[0])
	}
	if g.o.NoHostile || h>>16%32 != 0 {
		return
	}
	if v := g.hostile(h >> 24); !slices.Contains(it.Choices, v) { // a choice would be out of order
		s.values = append(s.values, v)
	}
}

func (g *generated) value(it *Item, h uint64, s *scratch) string {
	switch it.Type {
	case "number":
		return strconv.FormatInt(int64(h%20_000)-1000, 10)
	case "decimal":
		return s.money(h % 10_000_000)
	case "date":
		s.text = time.Unix(int64(h%20_000)*daySize, 0).UTC().AppendFormat(s.text[:0], time.DateOnly)
		return string(s.text)
	case "radio", "select", "matrix":
		return pick(it.Choices, h)
	case "zip":
		return s.digits(h%100_000, 5)
	case "file":
		return "https://files.example.com/files/f-" + s.digits(h%1_000_000_007, 10)
	}
	if !g.o.NoHostile && h%16 == 0 {
		return g.hostile(h >> 8)
	}
	if it.Type == "textarea" {
		return pick(g.words.sentences, h>>16) + "\n" + pick(g.words.sentences, h>>24)
	}
	return pick(g.words.first, h>>16) + " " + pick(g.words.last, h>>24)
}

// hostile returns a value that tries an encoder.
func (g *generated) hostile(h uint64) string {
	if g.o.Control && h%4 == 0 {
		return pick(g.words.control, h>>2)
	}
	return pick(g.words.hostile, h>>2)
}

func pick(list []string, h uint64) string { return list[h%uint64(len(list))] }
