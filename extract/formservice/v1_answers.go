package formservice

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// refusal writes an error envelope.
func (w *xmlWriter) refusal(r *refusal) []byte {
	w.open("error")
	w.element("error", r.message, "code", strconv.Itoa(r.code))
	w.raw("\n")
	return w.close()
}

// form writes the element of Get Forms and Copy Form.
func (w *xmlWriter) form(f *Form) {
	w.begin("form", "id", cmp.Or(f.ID, f.Directory))
	w.raw(">")
	w.element("name", f.Name)
	w.element("description", f.Description)
	w.element("directory", f.Directory)
	w.raw("</form>\n")
}

// status writes the answer of Get Form Status.
func (w *xmlWriter) status(f *Form) {
	w.raw("<status>")
	w.element("state", "open")
	w.element("last_modified", "2026-01-01 00:00:00")
	w.limit("items", len(f.Items), 500)
	w.limit("results", len(f.stored.records), MaxResults)
	w.raw("</status>\n")
}

func (w *xmlWriter) limit(kind string, used, total int) {
	w.begin("limit", "type", kind)
	w.raw(">")
	w.element("used", strconv.Itoa(used))
	w.element("total", strconv.Itoa(total))
	w.raw("</limit>")
}

// publish writes the answer of Get Publish for the server that was addressed.
func (w *xmlWriter) publish(f *Form, account, host string, secure bool) {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	base := scheme + host + "/" + account + "/" + f.Directory + "/"
	w.raw("<publish>")
	w.element("url", base, "type", "normal")
	w.element("url", base+"?fs_printer=1", "type", "printer")
	w.element("code", `<a href="`+base+`">`+f.Name+`</a>`)
	w.element("code", `<iframe src="`+base+`" width="100%"></iframe>`)
	w.raw("</publish>\n")
}

// results writes the page of a request and returns how many results it holds.
func (w *xmlWriter) results(f *Form, q *resultsQuery, style string, shape func(Result) Result) int {
	if q.headings {
		w.headings(f, q, style)
	}
	n := 0
	w.raw("<results>\n")
	f.pick(q, func(r Result) {
		w.result(f, shape(r), q.view.Columns)
		n++
	})
	w.raw("</results>\n")
	return n
}

// headings writes the labels of a view's columns: metas, then items by index.
func (w *xmlWriter) headings(f *Form, q *resultsQuery, style string) {
	attribute := "for"
	if style == "id" {
		attribute = "id"
	}
	heading := func(id, label string) {
		if shown(q.view.Columns, id) {
			w.element("heading", f.heading(id, label, q.labels), attribute, id)
			w.raw("\n")
		}
	}
	group := func(tag string) {
		if style == "nested" {
			w.raw(tag)
		}
	}
	items := slices.Clone(f.Items)
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.Index, b.Index) })
	w.raw("<headings>\n")
	group("<metas>")
	for _, id := range f.Metas {
		if style != "items" {
			heading(id, metaLabel(id))
		}
	}
	group("</metas><items>")
	for _, it := range items {
		heading(it.ID, it.Label)
	}
	group("</items>")
	w.raw("</headings>\n")
}

// heading is the label of a column: its custom label, else its own. The labels of the
// composite items that it belongs to stand before.
func (f *Form) heading(id, label string, custom map[string]string) string {
	if own, ok := custom[id]; ok {
		label = own
	}
	for _, id := range slices.Backward(parents(id)) {
		parent := f.Groups[id]
		if own, ok := custom[id]; ok {
			parent = own
		}
		if parent != "" && label != "" {
			parent += " – "
		}
		label = parent + label
	}
	return label
}

// metaLabel makes "Result status" of result_status.
func metaLabel(id string) string {
	label := strings.ReplaceAll(id, "_", " ")
	return strings.ToUpper(label[:min(1, len(label))]) + label[min(1, len(label)):]
}

func shown(columns []string, id string) bool { return columns == nil || slices.Contains(columns, id) }

// result writes one result.
func (w *xmlWriter) result(f *Form, r Result, columns []string) {
	w.begin("result", "id", strconv.FormatInt(r.ID, 10))
	w.raw("><metas>")
	for _, m := range r.Metas {
		if shown(columns, m.ID) {
			w.element("meta", m.Value, "id", m.ID)
		}
	}
	w.raw("</metas>\n<items>")
	for _, a := range r.Items {
		if shown(columns, a.ID) {
			w.answer(f, r.ID, a)
		}
	}
	w.raw("</items></result>\n")
}

// answer writes one item. Results of even ids number the values of an answer
// that holds several; those of odd ids shorten an empty value.
func (w *xmlWriter) answer(f *Form, id int64, a Answer) {
	if a.Type == "" || a.Index == 0 {
		it, _ := f.item(a.ID)
		a.Type, a.Index = cmp.Or(a.Type, it.Type), cmp.Or(a.Index, it.Index)
	}
	attributes := []string{"id", a.ID}
	if a.Index != 0 {
		attributes = append(attributes, "index", strconv.Itoa(a.Index))
	}
	if a.Type != "" {
		attributes = append(attributes, "type", a.Type)
	}
	w.begin("item", attributes...)
	if len(a.Values) == 0 {
		w.raw("/>")
		return
	}
	w.raw(">")
	for i, v := range a.Values {
		var number []string
		if len(a.Values) > 1 && id%2 == 0 {
			number = []string{"index", strconv.Itoa(i + 1)}
		}
		if v == "" && id%2 != 0 {
			w.raw("<value/>")
		} else {
			w.element("value", v, number...)
		}
	}
	w.raw("</item>")
}
