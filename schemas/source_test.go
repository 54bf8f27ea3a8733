package schemas

import (
	"strings"
	"testing"
)

func TestParseSource(t *testing.T) {
	for text, want := range map[string]Source{
		"result_id":          {Kind: FromResultID},
		"meta:result_status": {Kind: FromMeta, ID: "result_status"},
		"item:1":             {Kind: FromItem, ID: "1"},
		"item:353-0-0":       {Kind: FromItem, ID: "353-0-0"},
		"other:206":          {Kind: FromOther, ID: "206"},
		"file:name":          {Kind: FromFile, ID: "name"},
		"item:a:b":           {Kind: FromItem, ID: "a:b"},
		"item: 1":            {Kind: FromItem, ID: " 1"},
		"meta:ü":             {Kind: FromMeta, ID: "ü"},
	} {
		got, err := ParseSource(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("ParseSource(%q) = %v, %v", text, got, err)
		}
	}
	if s := (Source{}).String(); s != "" {
		t.Errorf("the zero Source is %q", s)
	}
}

func TestSourceLabel(t *testing.T) {
	headings := map[string]string{"12": "Colour", "name": "Full name"}
	for from, want := range map[string]string{"item:12": "Colour", "other:12": "Colour (other)", "item:name": "Full name", "file:name": "", "item:13": ""} {
		s, _ := ParseSource(from)
		if got, listed := s.Label(headings); got != want || listed != (want != "") {
			t.Errorf("%s: %q, %t", from, got, listed)
		}
	}
}

func TestParseSourceErrors(t *testing.T) {
	const forms = "use result_id, meta:ID, item:ID or other:ID"
	for text, want := range map[string]string{
		"":           "write the source of the column's values: result_id, meta:ID, item:ID or other:ID",
		"item:":      `source "item:" needs an id after the colon, for example "item:1"`,
		"meta:":      `source "meta:" needs an id after the colon, for example "meta:1"`,
		"itme:4":     `unknown source "itme:4"; ` + forms,
		"Item:4":     `unknown source "Item:4"; ` + forms,
		"id":         `unknown source "id"; ` + forms,
		"4":          `unknown source "4"; ` + forms,
		"question:1": `unknown source "question:1"; ` + forms,
	} {
		if got, err := ParseSource(text); err == nil || err.Error() != want {
			t.Errorf("ParseSource(%q) = %v, error:\n%v\nwant:\n%s", text, got, err, want)
		}
	}
}

func FuzzParseSource(f *testing.F) {
	for _, s := range []string{"result_id", "meta:x", "item:353-0-0", "item:", "itme:1", "", "meta:a:b", "item:\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseSource(text)
		if err != nil {
			if !strings.Contains(err.Error(), "source") {
				t.Errorf("ParseSource(%q): %v", text, err)
			}
			return
		}
		if got.String() != text {
			t.Errorf("ParseSource(%q) is spelled %q", text, got)
		}
	})
}
