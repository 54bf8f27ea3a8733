package v1

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// decodePage decodes a copy of an answer of Get Results into a page.
func decodePage(body []byte, contentType string) (*page.Page, error) {
	d := newDecoder()
	defer d.release()
	d.Text = append(d.Text, body...)
	if err := d.decode(contentType, d.readPage); err != nil {
		return nil, err
	}
	return d.Finish(), nil
}

func TestBounds(t *testing.T) {
	results := func(n int) string {
		return inResponse("<results>" + strings.Repeat(`<result id="1"/>`, n) + "</results>")
	}
	deep := func(n int) string { // n open elements in all
		return inResponse(strings.Repeat("<x>", n-1) + strings.Repeat("</x>", n-1) + "<results/>")
	}
	for _, c := range []struct {
		name, body string
		want       string // of the error, "" for none
	}{
		{"results at the bound", results(10_000), ""},
		{"results beyond", results(10_001), "it has more than 10000 results"},
		{"depth at the bound", deep(64), ""},
		{"depth beyond", deep(65), "nested too deeply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(how string, err error) {
				var answer *transport.AnswerError
				if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &answer) || !strings.Contains(answer.Problem, c.want)) {
					t.Errorf("%s: err = %v, want %q", how, err, c.want)
				}
			}
			_, err := decodePage([]byte(c.body), "")
			check("DecodePage", err)
			var d decoder
			p, err := d.again(c.body)
			defer p.Release()
			check("decode", err)
			if err != nil && (p.Len() != 0 || len(p.Fields) != 0) {
				t.Errorf("a part of the page is left behind: %+v", p)
			}
		})
	}
}

// TestReuse decodes one answer after another into one page: nothing of an
// earlier one may show in a later one.
func TestReuse(t *testing.T) {
	var d decoder
	bodies := append([]string{string(benchPage())}, fuzzSeeds...)
	for i := range 3 * len(bodies) {
		body := bodies[i*7%len(bodies)]
		fresh, wantErr := decodePage([]byte(body), "")
		p, err := d.again(body)
		if !reflect.DeepEqual(err, wantErr) {
			t.Fatalf("err = %v, in a fresh page %v\n%s", err, wantErr, body)
		}
		if err != nil {
			p.Release()
			continue
		}
		if got, want := plain(p), plain(fresh); !reflect.DeepEqual(got, want) || p.Replaced != fresh.Replaced {
			t.Fatalf("decoded\n%+v\nin a fresh page\n%+v", got, want)
		}
		p.Release()
	}
}

// again decodes one more answer with the same decoder. The page is the caller's
// to release; it is empty with an error.
func (d *decoder) again(body string) (*page.Page, error) {
	d.Begin()
	d.Text = append(d.Text, body...)
	err := d.decode("", d.readPage)
	if err != nil {
		d.Reset()
	}
	return d.Finish(), err
}

func TestDecodePageCopies(t *testing.T) {
	body := []byte(oneValue("a&amp;b"))
	before := bytes.Clone(body)
	p, err := decodePage(body, "")
	if err != nil || !bytes.Equal(body, before) {
		t.Fatalf("err = %v, body %s", err, body)
	}
	clear(body)
	if got := string(p.Value(p.Cells(0)[0], 0)); got != "a&b" {
		t.Errorf("the page changed with the body: %q", got)
	}
	p.Release()
}

// TestNoAllocations: a page that is used again allocates nothing.
func TestNoAllocations(t *testing.T) {
	for name, body := range map[string][]byte{
		"clean":   benchPage(),
		"rewrite": bytes.ReplaceAll(benchPage(), []byte("\n"), []byte("\r\n")),
		"latin1":  []byte("<?xml version='1.0' encoding='ISO-8859-1'?>" + oneValue("\xe9")),
	} {
		var d decoder
		d.Begin()
		decode := func() {
			d.Text = append(d.Text[:0], body...)
			if err := d.decode("text/xml", d.readPage); err != nil {
				t.Fatal(err)
			}
		}
		decode()
		decode() // the two texts of a page have swapped: both have grown
		if n := testing.AllocsPerRun(5, decode); n > 0 {
			t.Errorf("%s: %v allocations for a page", name, n)
		}
	}
}

// TestManyFields: an answer in which every cell is a new field.
func TestManyFields(t *testing.T) {
	var b strings.Builder
	const n = 20_000
	for i := range n {
		b.WriteString(`<item id="` + strings.Repeat("x", i%3) + string(rune('a'+i%26)) + string(rune(0x4e00+i)) + `"/>`)
	}
	p := mustDecode(t, inResult("<items>"+b.String()+"</items>"))
	defer p.Release()
	if len(p.Fields) != n || len(p.Cells(0)) != n {
		t.Errorf("%d fields, %d cells", len(p.Fields), len(p.Cells(0)))
	}
}
