package extract

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBounds(t *testing.T) {
	results := func(n int) string {
		return inResponse("<results>" + strings.Repeat(`<result id="1"/>`, n) + "</results>")
	}
	deep := func(n int) string { // n open elements in all
		return inResponse(strings.Repeat("<x>", n-1) + strings.Repeat("</x>", n-1) + "<results/>")
	}
	for _, c := range []struct {
		name, body string
		bounds     Bounds
		want       string // of the error, "" for none
	}{
		{"results at the bound", results(3), Bounds{Results: 3}, ""},
		{"results beyond", results(4), Bounds{Results: 3}, "more results than the bound of 3"},
		{"default results", results(10_000), Bounds{}, ""},
		{"beyond the default", results(10_001), Bounds{}, "more results than the bound of 10000"},
		{"depth at the bound", deep(5), Bounds{Depth: 5}, ""},
		{"depth beyond", deep(6), Bounds{Depth: 5}, "nested deeper"},
		{"depth of cells", oneValue("x") + " ", Bounds{Depth: 5}, "nested deeper"},
		{"depth of cells at the bound", oneValue("x"), Bounds{Depth: 6}, ""},
		{"default depth", deep(64), Bounds{}, ""},
		{"beyond the default depth", deep(65), Bounds{}, "nested deeper"},
		{"bytes at the bound", results(0), Bounds{Bytes: int64(len(results(0)))}, ""},
		{"bytes beyond", results(0), Bounds{Bytes: int64(len(results(0))) - 1}, "larger than the bound"},
		{"negative is the default", results(1), Bounds{-1, -1, -1}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(how string, err error) {
				var answer *AnswerError
				if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &answer) || !strings.Contains(answer.Problem, c.want)) {
					t.Errorf("%s: err = %v, want %q", how, err, c.want)
				}
			}
			_, err := DecodePage([]byte(c.body), "", c.bounds)
			check("DecodePage", err)
			var p Page
			if err = p.ReadBody(strings.NewReader(c.body), c.bounds); err == nil {
				err = p.Decode("", c.bounds)
			}
			check("Decode", err)
			if err != nil && (p.Len() != 0 || len(p.Fields) != 0 || len(p.text) != 0) {
				t.Errorf("a part of the page is left behind: %+v", p)
			}
		})
	}
	if b := (Bounds{Bytes: 1 << 40}).orDefaults(); b.Bytes != mostBytes {
		t.Errorf("bytes %d: offsets would not fit", b.Bytes)
	}
}

func TestReadBody(t *testing.T) {
	body := fuzzSeeds[1] + strings.Repeat(" ", 200<<10)
	want := plain(mustDecode(t, body))
	for name, r := range map[string]io.Reader{
		"whole":       strings.NewReader(body),
		"byte":        iotest.OneByteReader(strings.NewReader(body)),
		"half":        iotest.HalfReader(strings.NewReader(body)),
		"data at EOF": iotest.DataErrReader(strings.NewReader(body)),
	} {
		p := NewPage()
		if err := p.ReadBody(r, Bounds{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := p.Decode("", Bounds{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := plain(p); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
		p.Release()
	}
	var p Page
	cut := io.MultiReader(strings.NewReader(body), iotest.ErrReader(io.ErrUnexpectedEOF))
	if err := p.ReadBody(cut, Bounds{}); !errors.Is(err, io.ErrUnexpectedEOF) || len(p.text) != 0 {
		t.Errorf("a cut body: err = %v, %d bytes kept", err, len(p.text))
	}
}

// TestReuse decodes one answer after another into one page: nothing of an
// earlier one may show in a later one.
func TestReuse(t *testing.T) {
	var p Page
	bodies := append([]string{string(benchPage())}, fuzzSeeds...)
	for i := range 3 * len(bodies) {
		body := bodies[i*7%len(bodies)]
		fresh, wantErr := DecodePage([]byte(body), "", Bounds{})
		if err := p.ReadBody(strings.NewReader(body), Bounds{}); err != nil {
			t.Fatal(err)
		}
		err := p.Decode("", Bounds{})
		if !reflect.DeepEqual(err, wantErr) {
			t.Fatalf("err = %v, in a fresh page %v\n%s", err, wantErr, body)
		}
		if err != nil {
			continue
		}
		if got, want := plain(&p), plain(fresh); !reflect.DeepEqual(got, want) || p.Replaced != fresh.Replaced {
			t.Fatalf("decoded\n%+v\nin a fresh page\n%+v", got, want)
		}
	}
}

func TestDecodePageCopies(t *testing.T) {
	body := []byte(oneValue("a&amp;b"))
	before := bytes.Clone(body)
	p, err := DecodePage(body, "", Bounds{})
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
		var p Page
		r := bytes.NewReader(nil)
		decode := func() {
			r.Reset(body)
			if err := errors.Join(p.ReadBody(r, Bounds{}), p.Decode("text/xml", Bounds{})); err != nil {
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

// TestInterns: what a page remembers of earlier answers is bounded.
func TestInterns(t *testing.T) {
	var p Page
	long := bytes.Repeat([]byte("x"), maxInternLen+1)
	if p.intern(long) != string(long) || len(p.interns) != 0 {
		t.Error("a long string is kept")
	}
	for i := range 3 * maxInterns {
		id := []byte{'a' + byte(i%16), 'a' + byte(i/16%16), 'a' + byte(i/256%16), 'a' + byte(i/4096)}
		if got := p.intern(id); got != string(id) {
			t.Fatalf("%q became %q", id, got)
		}
		if len(p.interns) > maxInterns {
			t.Fatalf("%d strings are kept", len(p.interns))
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

// TestHugePageIsNotPooled: Release lets go of a page beyond maxPooled.
func TestHugePageIsNotPooled(t *testing.T) {
	p := mustDecode(t, oneValue(strings.Repeat("x", maxPooled)))
	p.Release()
	if len(p.text) == 0 {
		t.Error("the page was emptied for the pool")
	}
}
