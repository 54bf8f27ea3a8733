package v1

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// answerWriter writes random answers that are valid but unlike each other in
// every way that XML and the grammar allow. choices drives it, so that a
// fuzzer can.
type answerWriter struct {
	strings.Builder
	choices []byte
}

// choose returns a number from 0 to n-1; 0 once the choices are used up.
func (w *answerWriter) choose(n int) int {
	if len(w.choices) == 0 {
		return 0
	}
	c := int(w.choices[0])
	w.choices = w.choices[1:]
	return c % n
}

func (w *answerWriter) oneOf(texts ...string) { w.WriteString(texts[w.choose(len(texts))]) }

func (w *answerWriter) space() {
	w.oneOf("", "", "\n    ", " ", "\r\n\t", "<!-- c -->", "<?p i?>", "<u v='1'>u<w/></u>", " x ")
}

func (w *answerWriter) text() {
	for range w.choose(4) {
		w.oneOf("a", "Ada Lovelace", "&amp;", "&#13;&#x0a;", "<![CDATA[<value>]]>", "\U0001f600", "<!-- c -->", "]]&gt;", "<u>no</u>", " ", "\r", "é", "<value>v</value>")
	}
}

// element writes one with the attributes and the content that are given, the
// blanks, quotes and the form of an empty element by choice.
func (w *answerWriter) element(name string, content func(), attrs ...string) {
	w.WriteString("<" + name)
	for _, a := range attrs {
		n, v, _ := strings.Cut(a, "=")
		w.oneOf(" ", " ", " ", "\n", "  ")
		w.WriteString(n)
		w.oneOf("=", "=", "=", " = ")
		quote := `"'`[w.choose(2):][:1]
		w.WriteString(quote + v + quote)
	}
	w.oneOf("", "", "", " ", "\n")
	if content == nil {
		w.WriteString("/>")
		return
	}
	w.WriteString(">")
	content()
	w.WriteString("</" + name)
	w.oneOf("", "", "", " ")
	w.WriteString(">")
}

func (w *answerWriter) value() {
	if w.choose(8) == 7 {
		w.element("value", nil)
		return
	}
	w.element("value", w.text)
}

func (w *answerWriter) item(i int) {
	attrs := []string{fmt.Sprintf("id=%d", i)}
	switch w.choose(6) {
	case 3:
		attrs = append([]string{"index=" + fmt.Sprint(i)}, attrs...)
	case 4:
		attrs = append(attrs, "index="+fmt.Sprint(i), "type=text")
	case 5:
		attrs = []string{fmt.Sprintf("id=&#%d;%d", '0'+i/10, i%10), "z=&lt;"}
	}
	switch w.choose(8) {
	case 5:
		w.element("item", nil, attrs...)
	case 6:
		w.element("item", w.text, attrs...)
	case 7:
		w.element("item", func() { w.text(); w.value(); w.space(); w.value(); w.text() }, attrs...)
	default:
		w.element("item", func() { w.space(); w.value(); w.space() }, attrs...)
	}
	w.space()
}

func (w *answerWriter) result(id int) {
	w.element("result", func() {
		w.space()
		w.element("metas", func() {
			for i := range 3 {
				if w.choose(5) != 4 {
					w.element("meta", w.text, fmt.Sprintf("id=m%d", i))
					w.space()
				}
			}
		})
		w.space()
		w.element("items", func() {
			w.space()
			for i := range 6 {
				switch w.choose(10) {
				case 7: // left out
				case 8:
					w.item(i)
					w.item(i)
				case 9:
					w.item(w.choose(12))
				default:
					w.item(i)
				}
			}
		})
		w.space()
	}, fmt.Sprintf("id=%d", id))
	w.space()
}

// randomAnswer writes an answer.
func randomAnswer(choices []byte) string {
	w := &answerWriter{choices: choices}
	headings := func() {
		w.element("headings", func() {
			w.element("heading", w.text, "for=m1")
			w.space()
			w.element("items", func() { w.element("heading", w.text, "id=3") })
		})
	}
	w.oneOf("", "\xef\xbb\xbf", "<?xml version='1.0' encoding='UTF-8'?>\n", "<!DOCTYPE fs_response>")
	w.element("fs_response", func() {
		w.space()
		if w.choose(3) == 1 {
			headings()
		}
		w.element("results", func() {
			w.space()
			for i := range 1 + w.choose(6) {
				w.result(i)
			}
		})
		w.space()
		if w.choose(4) == 1 {
			headings()
		}
	}, "timestamp=now", "status=success")
	return w.String()
}

func compareAnswer(t *testing.T, choices []byte) {
	t.Helper()
	body := randomAnswer(choices)
	tree, err := oracleTree([]byte(body))
	if err != nil {
		t.Fatalf("the answer is not XML: %v\n%s", err, body)
	}
	want, err := oraclePage(tree)
	if err != nil {
		t.Fatalf("the oracle refuses the answer: %v\n%s", err, body)
	}
	page, err := decodeViewed(t, []byte(body), "")
	if err == nil {
		defer page.Release()
	}
	compareWithOracle(t, page, err, want, nil)
}

// TestRandomAnswers decodes a fixed set of random answers.
func TestRandomAnswers(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		choices := make([]byte, 2000)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		compareAnswer(t, choices)
	}
}

// FuzzRandomAnswers lets the fuzzer choose.
func FuzzRandomAnswers(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("an answer of its own"))
	f.Fuzz(compareAnswer)
}
