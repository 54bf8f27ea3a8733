package formservice

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/formetl/formetl/extract/formservice/internal/jsonapi"
	"github.com/formetl/formetl/extract/formservice/internal/xmltext"
)

// writer appends the answers of API v1.
type writer struct{ xmltext.Writer }

func newWriter(buf []byte, f Faults) *writer {
	root := "fs_response"
	if f.OldRoot {
		root = "fs_result"
	}
	return &writer{xmltext.New(buf, root, f.Latin1, f.Control)}
}

// The error codes of the specification, section 7.
const (
	codeInvalidURL   = 1
	codeInvalidValue = 2
	codeBusy         = 3
	codeInvalidKey   = 100
	codeInvalidUser  = 101
	codeInvalidForm  = 102
	codeInvalidID    = 103
)

// refusal is an error envelope to be sent.
type refusal struct {
	code    int
	status  int // 0: by the code
	message string
	allow   string // the method that there is, where that is the error
}

// Error returns the message with its code.
func (r *refusal) Error() string { return fmt.Sprintf("error %d: %s", r.code, r.message) }

// httpStatus is the HTTP status that goes with the code.
func (r *refusal) httpStatus() int {
	if r.status != 0 {
		return r.status
	}
	switch r.code {
	case codeInvalidValue, codeInvalidID:
		return 400
	case codeBusy:
		return 503
	case codeInvalidKey:
		return 401
	case codeInvalidURL, codeInvalidUser, codeInvalidForm:
		return 404
	}
	return 500
}

// refusal writes an error envelope.
func (w *writer) refusal(r *refusal) []byte {
	w.Open("error")
	w.Raw(`<error code="`, strconv.Itoa(r.code), `">`)
	w.Escape(r.message, false)
	w.Raw("</error>\n")
	return w.Close()
}

// form writes the element of Get Forms and Copy Form.
func (w *writer) form(f *Form) {
	w.Raw("<form")
	w.Attribute("id", cmp.Or(f.ID, f.Directory))
	w.Raw(">")
	w.Element("name", f.Name)
	w.Element("description", f.Description)
	w.Element("directory", f.Directory)
	w.Raw("</form>\n")
}

// status writes the answer of Get Form Status.
func (w *writer) status(f *Form) {
	state, modified := "open", f.LastModified
	if f.Closed {
		state = "closed"
	}
	if modified.IsZero() {
		modified = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	w.Raw("<status>")
	w.Element("state", state)
	w.Element("last_modified", modified.Format(WallTime))
	w.limit("items", len(f.Items), cmp.Or(f.ItemsAllowed, 500))
	w.limit("results", len(f.stored.records), cmp.Or(f.TotalAllowed, MaxResults))
	w.Raw("</status>\n")
}

func (w *writer) limit(kind string, used, total int) {
	w.Raw("<limit")
	w.Attribute("type", kind)
	w.Raw(">")
	w.Number("used", used)
	w.Number("total", total)
	w.Raw("</limit>")
}

// publish writes the answer of Get Publish for the server that was addressed.
func (w *writer) publish(f *Form, account, host string, secure bool) {
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	base := scheme + host + "/" + account + "/" + f.Directory + "/"
	w.Raw("<publish>")
	for _, kind := range []string{"normal", "printer"} {
		address := base
		if kind != "normal" {
			address += "?fs_" + kind + "=1"
		}
		w.Raw("<url")
		w.Attribute("type", kind)
		w.Raw(">")
		w.Escape(address, false)
		w.Raw("</url>")
	}
	w.Element("code", `<a href="`+base+`">`+f.Name+`</a>`)
	w.Element("code", `<iframe src="`+base+`" width="100%"></iframe>`)
	w.Raw("</publish>\n")
}

// results writes the page of a request and returns how many results it holds.
func (w *writer) results(f *Form, q *resultsQuery, style string) int {
	if q.headings {
		w.headings(f, q, style)
	}
	n := 0
	w.Raw("<results>\n")
	f.pick(q, func(r Result) {
		w.result(f, r, q.view.Columns)
		n++
	})
	w.Raw("</results>\n")
	return n
}

// headings writes the labels of a view's columns: metas, then items by index.
func (w *writer) headings(f *Form, q *resultsQuery, style string) {
	attribute := "for"
	if style == "id" {
		attribute = "id"
	}
	heading := func(id, label string) {
		if !shown(q.view.Columns, id) {
			return
		}
		w.Raw("<heading")
		w.Attribute(attribute, id)
		w.Raw(">")
		w.Escape(f.heading(id, label, q.labels), false)
		w.Raw("</heading>\n")
	}
	group := func(tag string) {
		if style == "nested" {
			w.Raw(tag)
		}
	}
	items := slices.Clone(f.Items)
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.Index, b.Index) })
	w.Raw("<headings>\n")
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
	w.Raw("</headings>\n")
}

// heading is the label of a column: its custom label, else its own. The labels of the
// composite items that it belongs to stand before.
func (f *Form) heading(id, label string, custom map[string]string) string {
	if own, ok := custom[id]; ok {
		label = own
	}
	parents := jsonapi.Parents(id)
	for i := range parents {
		id := parents[len(parents)-1-i]
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
	label := []byte(id)
	for i, c := range label {
		if c == '_' {
			label[i] = ' '
		}
	}
	if len(label) > 0 && label[0] >= 'a' && label[0] <= 'z' {
		label[0] -= 'a' - 'A'
	}
	return string(label)
}

func shown(columns []string, id string) bool { return columns == nil || slices.Contains(columns, id) }

// result writes one result.
func (w *writer) result(f *Form, r Result, columns []string) {
	w.Spell = xmltext.SpellingOf(r.ID)
	w.Raw(`<result id="`)
	w.Buf = strconv.AppendInt(w.Buf, r.ID, 10)
	w.Raw(`"><metas>`)
	for _, m := range r.Metas {
		if shown(columns, m.ID) {
			w.Buf = append(w.Buf, "<meta"...)
			w.Attribute("id", m.ID)
			w.Buf = append(w.Buf, '>')
			w.Text(m.Value)
			w.Buf = append(w.Buf, "</meta>"...)
		}
	}
	w.Raw("</metas>\n<items>")
	for _, a := range r.Items {
		if shown(columns, a.ID) {
			w.answer(f, r.ID, a)
		}
	}
	w.Raw("</items></result>\n")
	w.Spell = xmltext.Named
}

// answer writes one item. Results of even ids number the values of an answer
// that holds several; those of odd ids shorten an empty value.
func (w *writer) answer(f *Form, id int64, a Answer) {
	if a.Type == "" || a.Index == 0 {
		it, _ := f.item(a.ID)
		a.Type, a.Index = cmp.Or(a.Type, it.Type), cmp.Or(a.Index, it.Index)
	}
	w.Buf = append(w.Buf, "<item"...)
	w.Attribute("id", a.ID)
	if a.Index != 0 {
		w.Buf = append(w.Buf, ` index="`...)
		w.Buf = strconv.AppendInt(w.Buf, int64(a.Index), 10)
		w.Buf = append(w.Buf, `"`...)
	}
	if a.Type != "" {
		w.Attribute("type", a.Type)
	}
	if len(a.Values) == 0 {
		w.Buf = append(w.Buf, "/>"...)
		return
	}
	w.Buf = append(w.Buf, ">"...)
	for i, v := range a.Values {
		if v == "" && id%2 != 0 {
			w.Buf = append(w.Buf, "<value/>"...)
			continue
		}
		w.Buf = append(w.Buf, "<value"...)
		if len(a.Values) > 1 && id%2 == 0 {
			w.Buf = append(w.Buf, ` index="`...)
			w.Buf = strconv.AppendInt(w.Buf, int64(i+1), 10)
			w.Buf = append(w.Buf, `"`...)
		}
		w.Buf = append(w.Buf, ">"...)
		w.Text(v)
		w.Buf = append(w.Buf, "</value>"...)
	}
	w.Buf = append(w.Buf, "</item>"...)
}
