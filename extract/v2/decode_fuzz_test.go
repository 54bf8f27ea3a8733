package v2

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// fuzzSeeds reach between them every branch of the decoder.
var fuzzSeeds = []string{
	`{"results":[]}`,
	`{"results":[{"id":"7","result_status":"Complete","date_start":"2026-01-05T17:26:24.087Z","date_update":"2026-07-05T17:26:24Z","score":3,
 "items":[{"id":"1","position":2,"value":"a \"b\" \u00e9\ud83d\ude00"},{"id":"5","position":5,"values":[{"position":1,"value":"B"},{"position":0,"value":"A"}]}]},
 {"id":"8","result_status":"Incomplete","date_start":"2026-01-06T17:26:24.087Z","date_update":null,"score":3,
 "items":[{"id":"1","position":2,"value":""},{"id":"5","position":5,"values":[]},{"id":319,"values":[{"other":"Teal","position":1,"value":"Another"}]}]}]}`,
	`{"results":[{"id":1,"user":{"ip":"1.2.3.4","x":[1]},"user_ip":"5","login":{"username":"u"},"payment":{"status":"ok"}}]}`,
	`{"results":[{"items":[{"value":"x","position":"3","id":"1"},{"id":"2"},{"id":"3","value":null},{"id":"4","values":["a",null,1.5e3,true]}],"id":"9"}]}`,
	`{"results":[{"id":"1","items":[{"id":"1","value":"a","label":"x"},{"id":"1","value":"b","more":{}}]},{"id":"2","items":[{"id":"1","value":"c","value":"d"}]}]}`,
	`{"error":{"message":"Too many requests","status":429}}`,
	`{"error":"no","results":[]}`,
	`{"results":[{"id":"1","id":"2"}]}`,
	`{"results":[{"id":"1","score":"1","score":"2"}]}`,
	`{"results":[{"id":"1","score":"\b\f\u0000\ud800 \ud800\u0041\\b"}]}`,
	"\xef\xbb\xbf{\"results\":[{\"id\":\"1\",\"score\":\"\xff\xc3\x28\ufffe\uffff\"}]} \r\n\t",
	`{"results":[{"id":"1","date_start":"2026-02-30T00:00:00Z","date_finish":"2026-02-28T24:00:00Z","date_update":"2026-02-28T23:59:59+02:00"}]}`,
	`{"forms":[]}`, `[]`, `{}`, `[1,]`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"results":[{"id":"1"}]}x`, `<html></html>`, ``, ` `, `{"a":tru}`,
	`{"results":[{"id":"1","\u0073core":"x","items":[{"\u0069d":"7","value":"q"}]},{"id":"2","\u0073core":"y","items":[{"\u0069d":"7","value":"r"}]}]}`,
}

// decodeViewed decodes, and checks that each value is a valid view of its own.
func decodeViewed(t *testing.T, data []byte, zone *time.Location) (*page.Page, error) {
	t.Helper()
	d := newDecoder(zone)
	defer d.release()
	d.Text = append(d.Text, data...)
	if err := d.decode(); err != nil {
		return nil, err
	}
	text := d.Text
	p := d.Finish()
	at := func(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
	for i := range p.Len() {
		for _, c := range p.Cells(i) {
			for j := range int(c.Values) {
				v := p.Value(c, j)
				if len(v) > 0 && (at(v) < at(text) || at(v)+uintptr(len(v)) > at(text)+uintptr(len(text))) || !utf8.Valid(v) {
					t.Fatalf("the view %q is out of the text, or invalid", v)
				}
			}
		}
	}
	return p, nil
}

// compare holds the decoder to the oracle on one document.
func compare(t *testing.T, data []byte) {
	t.Helper()
	zone := benchZone(t)
	p, err := decodeViewed(t, data, zone)
	if err == nil {
		defer p.Release()
	}
	answer, isAnswer := errors.AsType[*transport.AnswerError](err)
	tree, treeErr := oracleTree(data)
	if treeErr != nil {
		if !isAnswer || answer.Fault == transport.FaultWrong || answer.Fault == transport.FaultForeign {
			t.Fatalf("err = %v, but encoding/json does not read it:\n%q", err, data)
		}
		return
	}
	if isAnswer && answer.Fault == transport.FaultBeyond {
		return // stricter: bounds
	}
	switch tree.(type) {
	case []member, []any:
	default:
		if !isAnswer {
			t.Fatalf("err = %v for a scalar", err)
		}
		return
	}
	want, isFailure, wantErr := oraclePage(tree, zone)
	switch _, failed := errors.AsType[*transport.ServiceError](err); {
	case wantErr != nil:
		if !isAnswer || answer.Fault != transport.FaultWrong && answer.Fault != transport.FaultForeign {
			t.Fatalf("err = %v, but the oracle refuses it:\n%q", err, data)
		}
	case isFailure != failed:
		// A fault of the results beside an error is reported first.
		if !isAnswer || !isFailure {
			t.Fatalf("err = %v, a failure: %v\n%q", err, isFailure, data)
		}
	case isFailure:
	case err != nil:
		t.Fatalf("err = %v, but the oracle reads it:\n%q", err, data)
	default:
		if got := plain(p); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v\nof %q", got, want, data)
		}
	}
}

// FuzzDecodePage holds the decoder to encoding/json: both accept the same documents, and
// read the same values.
func FuzzDecodePage(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(compare)
}

// writer writes random answers in every spelling and order. choices drives it.
type writer struct {
	strings.Builder
	choices []byte
}

func (w *writer) choose(n int) int {
	if len(w.choices) == 0 {
		return 0
	}
	c := int(w.choices[0])
	w.choices = w.choices[1:]
	return c % n
}

func (w *writer) oneOf(texts ...string) string { return texts[w.choose(len(texts))] }

func (w *writer) text() string {
	s := `"`
	for range w.choose(4) {
		s += w.oneOf("a", "Ada Lovelace", `\"`, `\\`, `\/`, `\n`, `\u00fc`, `\ud83d\ude00`, `\ud83d`, `\u000b`, `\b`, "é", "\xff", "]}", "\uffff", `\\f`)
	}
	return s + `"`
}

func (w *writer) scalar() string {
	if n := w.choose(12); n < 8 {
		return w.text()
	}
	return w.oneOf("null", "5", "-1.50e+3", "true", "false")
}

// object writes members in an order by choice, with blanks by choice.
func (w *writer) object(members ...string) string {
	if w.choose(6) == 5 {
		rand.New(rand.NewPCG(uint64(w.choose(256)), 1)).Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	blank := w.oneOf("", "", "", " ", "\n  ")
	return "{" + blank + strings.Join(members, blank+","+blank) + blank + "}"
}

func (w *writer) item(id int) string {
	name := w.oneOf(`"%d"`, `"%d"`, `"%d"`, `%d`, `"\u003%d"`)
	members := []string{`"id":` + fmt.Sprintf(name, id), fmt.Sprintf(`"position":%d`, id)}
	switch w.choose(10) {
	case 0, 1, 2, 3, 4, 5:
		members = append(members, `"value":`+w.scalar())
	case 6:
		members = append(members, `"label":{"x":[1,"\u0000"]}`, `"value":`+w.text())
	case 7:
	default:
		var entries []string
		for range w.choose(4) {
			switch w.choose(6) {
			case 4:
				entries = append(entries, w.scalar())
			case 5:
				entries = append(entries, w.object(`"other":`+w.scalar(), fmt.Sprintf(`"position":%d`, w.choose(12)), `"value":`+w.text()))
			default:
				entries = append(entries, fmt.Sprintf(`{"position":%d,"value":%s}`, w.choose(12), w.text()))
			}
		}
		members = append(members, `"values":[`+strings.Join(entries, ",")+`]`)
	}
	return w.object(members...)
}

func (w *writer) result(id int) string {
	members := []string{fmt.Sprintf(w.oneOf(`"id":"%d"`, `"id":"%d"`, `"id":%d`), id)}
	for _, name := range oracleMetas {
		switch n := w.choose(8); {
		case n == 7:
		case strings.HasPrefix(name, "date_") && n < 6:
			members = append(members, fmt.Sprintf(`"%s":"20%02d-%02d-%02dT%02d:%02d:59%s"`, name, w.choose(100), 1+w.choose(12), 1+w.choose(30), w.choose(24), w.choose(60), w.oneOf("Z", ".087Z", ".5Z", "+01:00")))
		default:
			members = append(members, `"`+name+`":`+w.scalar())
		}
	}
	if w.choose(5) == 4 {
		members = append(members, `"user":{"ip":`+w.scalar()+`,"x":{}}`)
	}
	var items []string
	for i := range 8 {
		if w.choose(8) != 7 {
			items = append(items, w.item(i))
		}
	}
	members = append(members, `"items":[`+strings.Join(items, w.oneOf(",", ",", ", "))+`]`)
	return w.object(members...)
}

func randomAnswer(choices []byte) []byte {
	w := &writer{choices: choices}
	n := 1 + w.choose(6)
	results := make([]string, 0, n)
	for i := range n {
		results = append(results, w.result(i))
	}
	return []byte(w.object(`"results":[`+strings.Join(results, ",")+`]`, `"more":`+w.scalar()))
}

// FuzzRandomAnswers lets the fuzzer choose among answers that are mostly right.
func FuzzRandomAnswers(f *testing.F) {
	f.Add([]byte("an answer of its own"))
	f.Fuzz(func(t *testing.T, choices []byte) { compare(t, randomAnswer(choices)) })
}

// TestRandomAnswers decodes a fixed set of random answers.
func TestRandomAnswers(t *testing.T) {
	for seed := range uint64(1500) {
		random := rand.New(rand.NewPCG(seed, 1))
		choices := make([]byte, 1500)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		compare(t, randomAnswer(choices))
	}
}

// TestTruncated: an answer that ends anywhere too early is refused, as cut.
func TestTruncated(t *testing.T) {
	for _, seed := range []string{fuzzSeeds[1], fuzzSeeds[2], fuzzSeeds[3], fuzzSeeds[4], string(benchPage(2))} {
		body := strings.TrimRight(seed, "\n")
		for n := range len(body) {
			p, err := decodePage([]byte(body[:n]))
			a, ok := errors.AsType[*transport.AnswerError](err)
			if !ok || p != nil || a.Fault != transport.FaultCut && n > 0 {
				t.Fatalf("the first %d bytes: err = %v", n, err)
			}
		}
	}
}

// TestDamaged: no single changed byte makes the decoder differ from the oracle.
func TestDamaged(t *testing.T) {
	body := []byte(fuzzSeeds[1])
	for i := range body {
		for _, c := range []byte(`"\{}[],:0a` + "\x00\xff ") {
			damaged := append([]byte(nil), body...)
			damaged[i] = c
			compare(t, damaged)
		}
	}
}
