package formservice

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// result builds the result of that id.
func (g *generated) result(id int64) Result {
	n := g.number(id)
	h := g.hash(saltContent, uint64(n))
	who := g.person(n)
	r := Result{ID: id, Metas: g.metas(n, h, &who)}
	for i := range g.items {
		r.Items = append(r.Items, g.answer(id, &g.items[i], &who, mix(h, uint64(i)))...)
	}
	return r
}

// person is who sent a result: what metas and answers say of one person agrees.
type person struct {
	name, login, email string // login and email: "" without an account
	age, born, price   string
	country            int
}

// person makes the person who sent result n, of 18 to 80 years.
func (g *generated) person(n int64) person {
	h, sent := g.hash(saltPerson, uint64(n)), g.dates(n).start
	if sent == never {
		sent = g.from
	}
	first, last, age := g.words.first[h%12], g.words.last[h>>4%11], 18+int(h>>8%62)
	who := person{
		name: first[0] + " " + last[0], age: strconv.Itoa(age), country: int(h >> 16 % 5), price: money(500 + h>>20%4900*5),
		born: time.Unix(sent, 0).UTC().AddDate(-age, 0, -1-int(h>>32%364)).Format(time.DateOnly),
	}
	if h>>44%8 >= 3 {
		who.login = first[1] + "." + last[1]
		who.email = who.login + "@example.com"
	}
	return who
}

// generatedMetas are the metas that generated results have, in order.
func generatedMetas() []string {
	return []string{
		metaStatus, "login_username", "login_email", metaStart, metaFinish, metaUpdate, "user_ip", "user_browser",
		"user_os", "user_device", "user_referrer", "payment_status", "payment_amount", "score",
	}
}

// metas makes the metas of result n, whose hash is h. A date that there is
// not is an empty meta in some results and no meta in others.
func (g *generated) metas(n int64, h uint64, who *person) []Meta {
	d, agent, payment := g.dates(n), g.words.agents[h>>7%7], pick(g.words.payments, h>>23)
	status, amount := "Complete", ""
	if d.finish == never {
		status = "Incomplete"
	}
	if payment != "" {
		amount = who.price
	}
	values := []string{
		status, who.login, who.email, wallText(d.start), wallText(d.finish), wallText(g.updated(n)), fmt.Sprintf("198.51.%d.%d", h>>13%256, h>>21%256),
		agent[0], agent[1], agent[2], pick(g.words.referrers, h>>19), payment, amount, strconv.Itoa(int(h >> 31 % 101)),
	}
	metas := make([]Meta, 0, len(values))
	for i, id := range generatedMetas() {
		if isDate(id) && values[i] == "" && (h&1 != 0 || id == metaUpdate) {
			continue
		}
		metas = append(metas, Meta{id, values[i]})
	}
	return metas
}

// wallText formats wall-clock seconds, "" for never.
func wallText(t int64) string {
	if t == never {
		return ""
	}
	return time.Unix(t, 0).UTC().Format(WallTime)
}

// money formats hundredths: 1234 is "12.34".
func money(cents uint64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// answer makes the answer to an item, if there is one: one in ten is missing
// (never that to the first item), one in twenty is empty.
func (g *generated) answer(id int64, it *Item, who *person, h uint64) []Answer {
	roll := h % 20
	if roll < 2 && it.Index != 1 {
		return nil
	}
	var values []string
	switch {
	case roll == 2 && h>>40%4 == 0:
		// an item element without a value element
	case roll == 2:
		values = []string{""}
	case several(it.Type):
		values = g.choices(it, h>>8)
	default:
		values = []string{g.value(id, it, who, h>>8)}
	}
	if several(it.Type) && len(values) > 1 && h>>50%16 == 0 { // several elements of one id
		return []Answer{{it.ID, it.Type, it.Index, values[:1]}, {it.ID, it.Type, it.Index, values[1:]}}
	}
	return []Answer{{it.ID, it.Type, it.Index, values}}
}

// choices returns one value or several, in the order of the choices, and now
// and then a hostile one.
func (g *generated) choices(it *Item, h uint64) []string {
	var values []string
	for i, c := range it.Choices {
		if h>>i&1 == 1 {
			values = append(values, c)
		}
	}
	if len(values) == 0 {
		values = append(values, it.Choices[0])
	}
	if g.o.NoHostile || h>>16%32 != 0 {
		return values
	}
	if v := g.hostile(h >> 24); !slices.Contains(it.Choices, v) { // a choice would be out of order
		values = append(values, v)
	}
	return values
}

func (g *generated) value(id int64, it *Item, who *person, h uint64) string {
	switch it.Type {
	case "number":
		return who.age
	case "decimal":
		return who.price
	case "date":
		return who.born
	case "select":
		return it.Choices[who.country]
	case "radio", "matrix":
		return pick(it.Choices, h)
	case "zip":
		return pick(g.words.zips[who.country], h)
	case "file":
		return MadeFiles + g.fileName(id, h)
	}
	switch {
	case !g.o.NoHostile && h%16 == 0:
		return g.hostile(h >> 8)
	case it.Label == "Full name":
		return who.name
	case it.Type == "textarea" && h>>16%4 == 0:
		return pick(g.words.sentences, h>>20) + "\n" + pick(g.words.sentences, h>>20+1+h>>28%10)
	}
	return pick(g.words.sentences, h>>20)
}

// fileName returns the name of an uploaded file, as links have it: percent-encoded, and
// with the result's id. One in 16 is a signature, and one in eight tries a client.
func (g *generated) fileName(id int64, h uint64) string {
	kind, name := "f", pick(g.words.files, h>>8)
	switch {
	case h%16 == 0:
		kind, name = "sig", "signature.png"
	case h%16 < 3 && !g.o.NoHostile:
		name = pick(g.words.hostileFiles, h>>8)
	}
	return fmt.Sprintf("%s-%d-%d-%d_%s", kind, h>>16%1000, h>>26%1000, id, name)
}

// hostile returns a value that tries an encoder.
func (g *generated) hostile(h uint64) string {
	if g.o.Control && h%4 == 0 {
		return pick(g.words.control, h>>2)
	}
	return pick(g.words.hostile, h>>2)
}

func pick(list []string, h uint64) string { return list[h%uint64(len(list))] }
