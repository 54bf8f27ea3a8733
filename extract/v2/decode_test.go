package v2

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// inResult is an answer with one result, which holds the members too.
func inResult(members string) string { return `{"results":[{"id":"1",` + members + `}]}` }

// decodePage decodes a copy of one answer. Dates are UTC.
func decodePage(body []byte) (*page.Page, error) {
	d := newDecoder(time.UTC)
	defer d.release()
	d.Text = append(d.Text, body...)
	if err := d.decode(); err != nil {
		return nil, err
	}
	return d.Finish(), nil
}

func mustDecode(t *testing.T, body string) *page.Page {
	t.Helper()
	p, err := decodePage([]byte(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return p
}

func TestShapes(t *testing.T) {
	meta := func(id, value string) plainCell { return plainCell{page.KindMeta, id, []string{value}} }
	item := func(id string, values ...string) plainCell { return plainCell{page.KindItem, id, values} }
	for name, c := range map[string]struct {
		body string
		want []plainCell
	}{
		"flat metas":        {inResult(`"user_device":"Desktop","score":4.5,"payment_amount":"5.00"`), []plainCell{meta("user_device", "Desktop"), meta("score", "4.5"), meta("payment_amount", "5.00")}},
		"nested metas":      {inResult(`"score":"1","user":{"ip":"a"}`), []plainCell{meta("score", "1")}},
		"unknown members":   {inResult(`"handshake_key":"x","more":[{"items":[1]}],"user":"x"`), nil},
		"value":             {inResult(`"items":[{"id":"1","position":1,"value":""},{"id":2,"value":true}]`), []plainCell{item("1", ""), item("2", "true")}},
		"values":            {inResult(`"items":[{"id":"1","values":[]},{"id":"41-0-1","values":[{"position":2,"value":"Good"}]}]`), []plainCell{item("1", ""), item("41-0-1", "Good")}},
		"order of choices":  {inResult(`"items":[{"id":"1","values":[{"position":2,"value":"c"},{"position":0,"value":"a"},{"position":"1","value":"b"}]}]`), []plainCell{item("1", "a", "b", "c")}},
		"no positions":      {inResult(`"items":[{"id":"1","values":[{"position":2,"value":"c"},{"value":"a"}]}]`), []plainCell{item("1", "c", "a")}},
		"other":             {inResult(`"items":[{"id":"1","values":[{"other":"Teal","position":1,"value":"Another"},{"other":"","position":2,"value":"Label"}]}]`), []plainCell{item("1", "Teal", "Label")}},
		"texts of a matrix": {inResult(`"items":[{"id":"1","values":[{"position":0,"value":""},{"position":1,"value":"x"}]}]`), []plainCell{item("1", "", "x")}},
		"null value":        {inResult(`"items":[{"id":"1","value":null,"values":["a"]}]`), []plainCell{item("1", "a")}},
		"id at the end":     {`{"results":[{"score":"2","items":[{"value":"v","id":"7"}],"id":1}]}`, []plainCell{meta("score", "2"), item("7", "v")}},
		"dates":             {inResult(`"date_start":"2026-01-05T17:26:24.087Z","date_finish":"","date_update":"soon"`), []plainCell{meta("date_start", "2026-01-05 17:26:24"), meta("date_finish", ""), meta("date_update", "soon")}},
	} {
		p := mustDecode(t, c.body)
		if got := plain(p); len(got) != 1 || got[0].ID != 1 || !reflect.DeepEqual(got[0].Cells, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		p.Release()
	}
}

// TestTypedTextsStandApart: page.Part leaves the labels, and gives typed texts a field of their own.
func TestTypedTextsStandApart(t *testing.T) {
	body := inResult(`"items":[{"id":"1","values":[{"position":0,"value":"Red"},{"other":"Teal","position":1,"value":"Another"},{"other":"mine"},{"other":"","value":"Label"}]}]`)
	p := mustDecode(t, body)
	defer p.Release()
	for range 2 { // the second time there is nothing to part
		p.Part(page.Others{Choices: map[string]map[string]bool{"1": {}}})
		want := []plainCell{{page.KindItem, "1", []string{"Red", "Another", "", "Label"}}, {page.KindOther, "1", []string{"Teal", "mine"}}}
		if got := plain(p)[0].Cells; !reflect.DeepEqual(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPositionIsIndex(t *testing.T) {
	p := mustDecode(t, inResult(`"items":[{"position":7,"id":"1","value":""},{"id":"2","position":"x","value":""},{"id":"3","value":""}]`))
	defer p.Release()
	for i, want := range []int{7, 0, 0} {
		if f := p.Fields[i]; f.Index != want || f.Kind != page.KindItem || f.Type != "" {
			t.Errorf("field %d: %+v", i, f)
		}
	}
}

// TestRefusals holds what is refused, with its fault.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		fault transport.Fault
		want  string
	}{
		"empty":             {" \n", transport.FaultEmpty, "it is empty"},
		"HTML":              {"<!doctype html>", transport.FaultGarbled, "HTML"},
		"API v1":            {"<?xml version=\"1.0\"?><fs_response/>", transport.FaultGarbled, "it is XML"},
		"words of API v1":   {`{"other":"<fs_response>"}`, transport.FaultForeign, "neither"},
		"text":              {"Warning", transport.FaultGarbled, "begins with neither"},
		"UTF-16":            {"\xff\xfe{\x00", transport.FaultBeyond, "UTF-16"},
		"array":             {"[]", transport.FaultForeign, "array"},
		"other object":      {`{"ok":true}`, transport.FaultForeign, "neither"},
		"other answer":      {`{"forms":[]}`, transport.FaultWrong, `has no list "results"`},
		"no results":        {`{"results":null}`, transport.FaultWrong, `no list "results"`},
		"two results":       {`{"results":[{"id":1}],"results":[{"id":2,"score":1}]}`, transport.FaultWrong, `a second "results"`},
		"text after":        {`{"results":[]}{}`, transport.FaultGarbled, "text after"},
		"text after, cut":   {`{"results":[]}]`, transport.FaultGarbled, "text after"},
		"no id":             {`{"results":[{"score":"1"}]}`, transport.FaultWrong, "without an id"},
		"bad id":            {`{"results":[{"id":"1.0"}]}`, transport.FaultWrong, "not a number"},
		"huge id":           {`{"results":[{"id":9223372036854775808}]}`, transport.FaultWrong, "not a number"},
		"two ids":           {`{"results":[{"id":"1","id":"1"}]}`, transport.FaultWrong, "a second id"},
		"two metas":         {inResult(`"score":"1","score":"1"`), transport.FaultWrong, "twice"},
		"two lists":         {inResult(`"items":[],"items":[]`), transport.FaultWrong, "a second items"},
		"two values":        {inResult(`"items":[{"id":"1","value":"a","values":[]}]`), transport.FaultWrong, `more than one "value"`},
		"two item ids":      {inResult(`"items":[{"id":"1","id":"2","value":"a"}]`), transport.FaultWrong, `a second "id" in one item`},
		"two choice values": {inResult(`"items":[{"id":"1","values":[{"value":"a","value":"b"}]}]`), transport.FaultWrong, `a second "value" in one choice`},
		"no item id":        {inResult(`"items":[{"value":"a"}]`), transport.FaultWrong, "no id"},
		"object as meta":    {inResult(`"score":{}`), transport.FaultWrong, "a meta that is"},
		"object as value":   {inResult(`"items":[{"id":"1","value":{}}]`), transport.FaultWrong, "is an object"},
		"wrong and damaged": {`{"results":[{"id":"x"},{"id":"1"]}`, transport.FaultGarbled, "comma"},
		"wrong and cut":     {`{"results":[{"id":"x"},{"id":"1"`, transport.FaultCut, "ends too early"},
		"deep":              {strings.Repeat(`{"a":`, 65), transport.FaultBeyond, "nested too deeply"},
		"control":           {inResult(`"score":"` + "\n" + `"`), transport.FaultGarbled, "control character"},
		"bad escape":        {inResult(`"score":"\x41"`), transport.FaultGarbled, "escape"},
		"bad digits":        {inResult(`"score":"\u00g0"`), transport.FaultGarbled, "hexadecimal"},
		"trailing comma":    {`{"results":[],}`, transport.FaultGarbled, "not a string"},
		"no comma":          {`{"results":[{"id":"1"}{"id":"2"}]}`, transport.FaultGarbled, "comma"},
		"no comma, guessed": {`{"results":[{"id":"1","score":"1"},{"id":"2""score":"1"}]}`, transport.FaultGarbled, "comma"},
		"comma, guessed":    {`{"results":[{"id":"1","score":"1"},{,"score":"1","id":"2"}]}`, transport.FaultGarbled, "not a string"},
	} {
		_, err := decodePage([]byte(c.body))
		a, ok := errors.AsType[*transport.AnswerError](err)
		if !ok || a.Fault != c.fault || !strings.Contains(a.Problem, c.want) {
			t.Errorf("%s: err = %v, want %q of fault %d", name, err, c.want, c.fault)
		}
	}
}

func TestBounds(t *testing.T) {
	repeated := func(n int, text string) string { return strings.Repeat(","+text, n)[1:] }
	nested := func(n int) string {
		return `{"results":[],"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
	}
	for name, c := range map[string]struct{ fits, beyond string }{
		"depth":   {nested(page.MaxDepth), nested(page.MaxDepth + 1)},
		"results": {`{"results":[` + repeated(page.MaxResults, `{"id":1}`) + `]}`, `{"results":[` + repeated(page.MaxResults+1, `{"id":1}`) + `]}`},
	} {
		mustDecode(t, c.fits).Release()
		_, err := decodePage([]byte(c.beyond))
		if a, ok := errors.AsType[*transport.AnswerError](err); !ok || a.Fault != transport.FaultBeyond {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	body := inResult(`"items":[{"id":"1","values":["a","b","c"]},{"id":"2","value":"d"}]`)
	for left, fits := range map[int]bool{2: false, 5: false, 6: true} {
		d := newDecoder(time.UTC)
		d.Text, d.spare = append(d.Text, body...), left
		err := d.decode()
		a, refused := errors.AsType[*transport.AnswerError](err)
		if refused == fits || refused && a.Fault != transport.FaultBeyond {
			t.Errorf("six cells and values, with %d allowed: err = %v", left, err)
		}
		d.release()
	}
}

// TestReplaced: what a page cannot hold is replaced and counted, as v1 does.
func TestReplaced(t *testing.T) {
	const fffd = "\ufffd"
	for name, c := range map[string]struct {
		text, want string
		replaced   int
	}{
		"escapes of control characters": {`a\u000b\u0000b`, "a" + fffd + fffd + "b", 2},
		"short escapes":                 {`\b\f\\b`, fffd + fffd + `\b`, 2},
		"allowed":                       {`\t\n\r\/`, "\t\n\r/", 0},
		"lone surrogates":               {`\ud83d \ude00\ud83dx`, fffd + " " + fffd + fffd + "x", 3},
		"pair":                          {`\uD83D\uDE00`, "\U0001f600", 0},
		"two halves the wrong way":      {`\ude00\ud83d`, fffd + fffd, 2},
		"invalid UTF-8":                 {"a\xff\xc3b\xe2\x82", "a" + fffd + fffd + "b" + fffd + fffd, 4},
		"surrogates in UTF-8":           {"\xed\xa0\xbd", strings.Repeat(fffd, 3), 3},
		"noncharacters":                 {"\ufffe\uffff" + `\ufffe`, strings.Repeat(fffd, 3), 3},
		"the real character":            {"\ufffd" + `\ufffd`, fffd + fffd, 0},
	} {
		p := mustDecode(t, inResult(`"score":"`+c.text+`"`))
		if got := string(p.Value(p.Cells(0)[0], 0)); got != c.want || p.Replaced != c.replaced {
			t.Errorf("%s: %q with %d replaced, want %q with %d", name, got, p.Replaced, c.want, c.replaced)
		}
		p.Release()
	}
}

func TestFailures(t *testing.T) {
	for body, want := range map[string]transport.ServiceError{
		`{"error":{"message":" Too many requests ","status":429}}`: {Message: "Too many requests", Status: 429, ByStatus: true},
		`{"error":{"message":"m","status":"500"},"results":[]}`:    {Message: "m", Status: 500, ByStatus: true},
		`{"error":"words"}`: {Message: "words", ByStatus: true},
		`{"error":{}}`:      {ByStatus: true},
	} {
		_, err := decodePage([]byte(body))
		if e, ok := errors.AsType[*transport.ServiceError](err); !ok || *e != want {
			t.Errorf("%s: %v", body, err)
		}
	}
	p := mustDecode(t, `{"error":null,"results":[]}`)
	p.Release()
}

// TestDates compares instants with package time, around each change of the clocks.
func TestDates(t *testing.T) {
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == 2026; at = at.Add(1799 * time.Second) {
			for _, text := range []string{at.Format(time.RFC3339), at.Add(87 * time.Millisecond).Format("2006-01-02T15:04:05.000Z"), at.In(time.FixedZone("", -5400)).Format(time.RFC3339)} {
				buf := []byte("x" + text + "y")
				span, _ := toWall(buf, page.Span{Start: 1, End: int32(1 + len(text))}, zone)
				if got, want := string(buf[span.Start:span.End]), at.In(zone).Format(extract.WireTime); got != want {
					t.Fatalf("%s: %s became %s, want %s", name, text, got, want)
				}
			}
		}
	}
}

// TestNoDates: what is no instant stays as it is.
func TestNoDates(t *testing.T) {
	for _, text := range []string{
		"", "2026-01-05", "2026-01-05 17:26:24", "2026-01-05T17:26:24", "2026-01-05T17:26:24.Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00z",
		"2026-01-01T00:00:00+0100", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+02:60", "2026-01-01T1:00:00.0Z", "2026-01-01T01:00:00,5Z", "2026-01-01T00:00:00ZZ", "20a6-01-01T00:00:00Z", "0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00",
	} {
		buf := []byte(text)
		if span, _ := toWall(buf, page.Span{End: int32(len(buf))}, time.UTC); string(buf[:span.End]) != text {
			t.Errorf("%q became %q", text, buf[:span.End])
		}
	}
}
