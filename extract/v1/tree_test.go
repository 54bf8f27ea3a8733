package v1

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/transport"
)

// decodeTree decodes an answer of the service and returns the root of a success.
func decodeTree(body []byte, contentType string) (root *node, err error) {
	d := newDecoder()
	defer d.release()
	d.Text = append(d.Text, body...)
	err = d.decode(contentType, func() (err error) {
		root, err = readTree(&d.scan)
		return err
	})
	if err != nil {
		return nil, err
	}
	return root, nil
}

func TestDecodeTree(t *testing.T) {
	body := []byte(`<?xml version="1.0"?>
<fs_response status="success" timestamp="now">
  <forms><form id="1"><name>A &amp; B</name><description><![CDATA[<b>]]></description><directory>a</directory></form><form id="2"/></forms>
</fs_response>`)
	before := string(body)
	root, err := decodeTree(body, "application/xml")
	if err != nil {
		t.Fatal(err)
	}
	if string(body) != before {
		t.Error("the body was changed")
	}
	if root.Name != "fs_response" || !reflect.DeepEqual(root.Attrs, map[string]string{"status": "success", "timestamp": "now"}) {
		t.Errorf("root %+v", root)
	}
	list := root.child("forms").all("form")
	if len(list) != 2 {
		t.Fatalf("%d forms", len(list))
	}
	form := list[0]
	if id, ok := form.Attrs["id"]; id != "1" || !ok {
		t.Errorf("id %q, %v", id, ok)
	}
	if _, ok := form.Attrs["x"]; ok {
		t.Error("an attribute that is not there")
	}
	if form.child("name").Text != "A & B" || form.child("description").Text != "<b>" || form.child("x") != nil {
		t.Errorf("form %+v", form)
	}
	if list[1].Children != nil || list[1].all("name") != nil {
		t.Errorf("form %+v", list[1])
	}
}

func TestTreeText(t *testing.T) {
	root, err := decodeTree([]byte("<fs_result status='success'><a> x<b>y</b>z<!-- --><![CDATA[&]]> </a></fs_result>"), "")
	if err != nil {
		t.Fatal(err)
	}
	if a := root.child("a"); a.Text != " xz& " || a.child("b").Text != "y" {
		t.Errorf("%+v", a)
	}
}

func TestTreeErrors(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
	}{
		{"not XML", "x", "not XML"},
		{"html", "<html>", "HTML page"},
		{"truncated", "<fs_response status='success'><count>1", "truncated"},
		{"another root", "<a/>", "not an answer of the service"},
		{"glued", "<fs_response status='success'/>x", "text after the root element"},
		{"too deep", inResponse(strings.Repeat("<a>", maxDepth) + strings.Repeat("</a>", maxDepth)), "nested deeper"},
		{"too many elements", inResponse(strings.Repeat("<a/>", maxNodes)), "more elements than the bound"},
		{"truncated error", "<fs_response status='error'><error code='3'>", "truncated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, err := decodeTree([]byte(c.body), "")
			var answer *transport.AnswerError
			if root != nil || !errors.As(err, &answer) || !strings.Contains(answer.Problem, c.want) {
				t.Errorf("root %v, err %v, want %q", root, err, c.want)
			}
		})
	}
}

// FuzzDecodeTree holds the tree to the oracle's.
func FuzzDecodeTree(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := decodeTree(data, "")
		tree, xmlErr := oracleTree(data)
		if err != nil || xmlErr != nil || declaresOther(data) || emptyNamespace(tree) {
			return // TestTreeErrors and FuzzDecodePage look at refusals
		}
		compareTrees(t, root, tree.children()[0])
	})
}

func compareTrees(t *testing.T, got *node, want *oracleNode) {
	t.Helper()
	children := want.children()
	if got.Name != want.name || got.Text != want.text() || len(got.Attrs) != len(want.attrs) || len(got.Children) != len(children) {
		t.Fatalf("%+v, the oracle has %+v", got, want)
	}
	values := make([]string, 0, len(want.attrs))
	for _, a := range want.attrs { // the oracle's names lack their prefixes
		values = append(values, a.Value)
	}
	slices.Sort(values)
	if !slices.Equal(slices.Sorted(maps.Values(got.Attrs)), values) {
		t.Fatalf("attributes %+v, the oracle has %+v", got.Attrs, want.attrs)
	}
	for i, c := range children {
		compareTrees(t, got.Children[i], c)
	}
}
