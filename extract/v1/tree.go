package v1

import (
	"strconv"
	"strings"

	"github.com/formetl/formetl/extract/transport"
)

// maxNodes bounds the elements of an answer, such as the list of forms.
const maxNodes = 200_000

// node is an element of an answer to a transaction other than Get Results.
type node struct {
	Name     string
	Attrs    map[string]string
	Children []*node
	Text     string // character data and CDATA, joined, without that of the children
}

// child returns the first child element with this name, nil if there is none.
func (n *node) child(name string) *node {
	if found := n.all(name); len(found) > 0 {
		return found[0]
	}
	return nil
}

// all returns the child elements with this name, in document order.
func (n *node) all(name string) []*node {
	var found []*node
	for _, c := range n.Children {
		if c.Name == name {
			found = append(found, c)
		}
	}
	return found
}

// textOf returns the trimmed text of the first child element with this name, "" if
// there is none.
func (n *node) textOf(name string) string {
	if c := n.child(name); c != nil {
		return strings.TrimSpace(c.Text)
	}
	return ""
}

// failure returns the error that an answer reports, from its last error element.
func (n *node) failure() *transport.ServiceError {
	e := new(node)
	if found := n.all("error"); len(found) > 0 {
		e = found[len(found)-1]
	}
	code, err := strconv.Atoi(strings.TrimSpace(e.Attrs["code"]))
	if err != nil {
		code = transport.CodeNone
	}
	return &transport.ServiceError{Code: code, Message: strings.TrimSpace(e.Text)}
}

// readTree reads the element whose start tag was read last, with its content. count is how many
// elements of the answer were read before it. The scanner bounds how deep they nest.
func readTree(s *scanner, count *int) (*node, error) {
	if *count++; *count > maxNodes {
		return nil, s.TooMany(int(s.name.Start), "elements", maxNodes)
	}
	n := &node{Name: string(s.Bytes(s.name)), Attrs: map[string]string{}}
	for _, a := range s.attrs {
		n.Attrs[string(s.Bytes(a.name))] = string(s.Bytes(a.value))
	}
	for {
		ev, err := s.next()
		switch {
		case err != nil:
			return nil, err
		case ev == eventEnd:
			return n, nil
		case ev == eventText:
			n.Text += string(s.Bytes(s.text))
		default:
			child, err := readTree(s, count)
			if err != nil {
				return nil, err
			}
			n.Children = append(n.Children, child)
		}
	}
}
