package v1

import (
	"errors"
	"maps"
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
		root, err = readTree(&d.scan, new(int))
		return err
	})
	if err != nil {
		return nil, err
	}
	return root, nil
}

func TestTreeErrors(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
	}{
		{"glued", "<fs_response status='success'/>x", "text after the root element"},
		{"too many elements", inResponse(strings.Repeat("<a/>", maxNodes)), "elements, the most that formetl reads"},
		{"truncated error", "<fs_response status='error'><error code='3'>", "ends too early"},
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
	f.Add([]byte(inResponse(`<forms><form id="1"><name>A &amp; B</name><description><![CDATA[<b>]]></description> x<b>y</b>z<!-- --></form><form id="2"/></forms>`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := decodeTree(data, "")
		tree, xmlErr := oracleTree(data)
		if err != nil || xmlErr != nil || declaresOther(data) || emptyNamespace(tree) {
			return // FuzzDecodePage looks at refusals
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
