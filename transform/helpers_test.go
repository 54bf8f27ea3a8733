package transform

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones for machines without them

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/schemas"
)

// answer is a document of Get Results in the making.
type answer struct{ strings.Builder }

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// result adds a result of cells "meta:id=value" and "item:id=value|value"
// ("item:id" is an item without a value, "item:id=" one empty value, an
// "@index" after the id its index). Cells stay in their order.
func (a *answer) result(id int64, cells ...string) *answer {
	fmt.Fprintf(a, `<result id="%d">`, id)
	for _, kind := range []string{"meta", "item"} {
		fmt.Fprintf(a, "<%ss>", kind)
		for _, c := range cells {
			if rest, ok := strings.CutPrefix(c, kind+":"); ok {
				a.cell(kind, rest)
			}
		}
		fmt.Fprintf(a, "</%ss>", kind)
	}
	a.WriteString("</result>")
	return a
}

func (a *answer) cell(kind, spec string) {
	field, text, has := strings.Cut(spec, "=")
	id, index, indexed := strings.Cut(field, "@")
	fmt.Fprintf(a, `<%s id="%s"`, kind, escape(id))
	if indexed {
		fmt.Fprintf(a, ` index="%s"`, index)
	}
	a.WriteString(">")
	switch {
	case kind == "meta":
		a.WriteString(escape(text))
	case has:
		for v := range strings.SplitSeq(text, "|") {
			fmt.Fprintf(a, "<value>%s</value>", escape(v))
		}
	}
	fmt.Fprintf(a, "</%s>", kind)
}

// page decodes the answer, with headings "id=label" (or "meta:id=label",
// "item:id=label") in front.
func (a *answer) page(t testing.TB, headings ...string) *page.Page {
	t.Helper()
	var head strings.Builder
	for _, h := range headings {
		id, label, _ := strings.Cut(h, "=")
		group, rest, grouped := strings.Cut(id, ":")
		if grouped {
			fmt.Fprintf(&head, `<%ss><heading for="%s">%s</heading></%ss>`, group, escape(rest), escape(label), group)
		} else {
			fmt.Fprintf(&head, `<heading for="%s">%s</heading>`, escape(id), escape(label))
		}
	}
	body := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><fs_response status="success"><headings>%s</headings><results>%s</results></fs_response>`, head.String(), a.String())
	p := decode(t, body)
	t.Cleanup(p.Release)
	return p
}

// decode decodes an answer of Get Results.
func decode(t testing.TB, body string) *page.Page {
	t.Helper()
	answer := func(*http.Request) (*http.Response, error) { return extracttest.Respond(http.StatusOK, body), nil }
	p, err := extracttest.Answering(t, "key", answer, nil).Results(t.Context(), "form1", extract.ResultsQuery{})
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return p
}

// col makes a declared column of "name from type [on_error]".
func col(t testing.TB, line string) schemas.Column {
	t.Helper()
	part := strings.Fields(line)
	from, err := schemas.ParseSource(part[1])
	if err != nil {
		t.Fatal(err)
	}
	typ, err := schemas.ParseType(part[2])
	if err != nil {
		t.Fatal(err)
	}
	c := schemas.Column{Name: part[0], From: from, Type: typ}
	if len(part) > 3 {
		c.OnError = schemas.OnError(part[3])
	}
	return c
}

func schema(t testing.TB, lines ...string) *schemas.Schema {
	t.Helper()
	s := &schemas.Schema{Name: "test"}
	for _, line := range lines {
		s.Columns = append(s.Columns, col(t, line))
	}
	return s
}

// run is a Flattener under a checked allocator with what it emitted, a row a
// string and null as "∅".
type run struct {
	*Flattener
	rows    []string
	batches [][]string // the columns' names of every batch
	sizes   []int64
	rejects []Reject
}

func start(t testing.TB, s *schemas.Schema, change ...func(*Options)) *run {
	t.Helper()
	mem := memory.NewCheckedAllocator(&Pool{})
	r := &run{}
	o := Options{
		Zone: time.UTC, Mem: mem,
		Emit:   r.emit,
		Reject: func(x Reject) error { r.rejects = append(r.rejects, x); return nil },
	}
	for _, f := range change {
		f(&o)
	}
	f, err := NewFlattener(s, o)
	if err != nil {
		t.Fatal(err)
	}
	r.Flattener = f
	t.Cleanup(func() {
		f.Release()
		mem.AssertSize(t, 0)
	})
	return r
}

func (r *run) emit(b arrow.RecordBatch) error {
	names := make([]string, 0, b.NumCols())
	for _, f := range b.Schema().Fields() {
		names = append(names, f.Name)
	}
	r.batches = append(r.batches, names)
	r.sizes = append(r.sizes, b.NumRows())
	r.rows = append(r.rows, rows(b)...)
	return nil
}

func rows(b arrow.RecordBatch) []string {
	out := make([]string, 0, b.NumRows())
	for i := range int(b.NumRows()) {
		cells := make([]string, 0, b.NumCols())
		for _, c := range b.Columns() {
			cells = append(cells, cell(c, i))
		}
		out = append(out, strings.Join(cells, " · "))
	}
	return out
}

// cell shows one value: strings quoted, lists in brackets, null as "∅".
func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "∅"
	}
	switch a := a.(type) {
	case *array.String:
		return fmt.Sprintf("%q", a.Value(i))
	case *array.Timestamp:
		return a.Value(i).ToTime(arrow.Microsecond).UTC().Format("2006-01-02T15:04:05.999999Z")
	case *array.List:
		from, to := a.ValueOffsets(i)
		var parts []string
		for k := from; k < to; k++ {
			parts = append(parts, cell(a.ListValues(), int(k)))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return a.ValueStr(i)
}

// feed appends the pages and flushes.
func (r *run) feed(t testing.TB, pages ...*page.Page) *run {
	t.Helper()
	for _, p := range pages {
		if err := r.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *run) wantRows(t testing.TB, want ...string) {
	t.Helper()
	if got := strings.Join(r.rows, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("rows:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}
