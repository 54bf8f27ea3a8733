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

// nodeOf returns the element whose start tag was read last, with its attributes and no content.
func nodeOf(s *scanner) *node {
	n := &node{Name: string(s.Bytes(s.name)), Attrs: map[string]string{}}
	for _, a := range s.attrs {
		n.Attrs[string(s.Bytes(a.name))] = string(s.Bytes(a.value))
	}
	return n
}

// readTree reads the element whose start tag was read last, with its content.
func readTree(s *scanner) (*node, error) {
	root := nodeOf(s)
	path := []*node{root}
	for count := 1; len(path) > 0; {
		ev, err := s.next()
		if err != nil {
			return nil, err
		}
		top := path[len(path)-1]
		switch ev {
		case eventText:
			top.Text += string(s.Bytes(s.text))
		case eventStart:
			if count++; count > maxNodes {
				return nil, s.TooMany(int(s.name.Start), "elements", maxNodes)
			}
			n := nodeOf(s)
			top.Children = append(top.Children, n)
			path = append(path, n)
		case eventEnd:
			path = path[:len(path)-1]
		}
	}
	return root, nil
}
