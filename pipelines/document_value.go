package pipelines

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// value is a node of a document and the path that leads to it.
type value struct {
	doc    *document
	node   ast.Node
	key    ast.MapKeyNode // the key that it stands under, nil for the root and for entries of a list
	path   string         // "source.timezone", "load[0].path"
	secret bool           // its text must never be shown
}

// given tells whether the file has the value.
func (v value) given() bool { return v.node != nil }

// isNull tells whether the key stands there without a value.
func (v value) isNull() bool {
	_, null := v.node.(*ast.NullNode)
	return v.node == nil || null
}

// fail reports a problem with the value. Messages may hold the value only as
// show gives it.
func (v value) fail(remedy, format string, args ...any) {
	p := *at(v.place(), Problem{Key: v.path, Message: fmt.Sprintf(format, args...), Remedy: remedy})
	if s, ok := v.scalar(); ok && !v.secret {
		p.Excerpt = "- " + show(s)
		if v.key != nil {
			p.Excerpt = keyText(v.key) + ": " + show(s)
		}
	}
	v.doc.problems = append(v.doc.problems, p)
}

// place is the token to point at: the scalar itself, else the key.
func (v value) place() *token.Token {
	if _, ok := v.scalar(); !ok && v.key != nil {
		return v.key.GetToken()
	}
	switch n := v.node.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 { // GetToken is the first colon
			return n.Values[0].Key.GetToken()
		}
	}
	return v.node.GetToken()
}

// show quotes a value for a message. Long values are cut, and a value that
// swallowed a line with a key (a quote that was never closed) is not shown.
func show(s string) string {
	const most = 80
	lower := strings.ToLower(s)
	for _, word := range []string{"api_key", "apikey", "api-key", "secret", "password"} {
		if strings.Contains(lower, word) {
			return "(a value that may hold a secret)"
		}
	}
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// scalar returns the text of a scalar as it was written: a number keeps its
// leading zeros.
func (v value) scalar() (string, bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// text reads a string that is not empty. A number is taken as written, so
// that ids and years need no quotes.
func (v value) text() (string, bool) {
	s, ok := v.scalar()
	switch {
	case v.isNull():
		v.fail("write a value after the colon, or leave the key out", "there is no value")
	case !ok:
		v.fail("write one value, in quotes if it reads true, false or null", "text is expected, not %s", v.kind())
	case s == "":
		v.fail("write a value, or leave the key out", "the value is empty")
	case strings.ContainsRune(s, 0):
		v.fail("remove the character", "the value holds the character NUL")
	default:
		return s, true
	}
	return "", false
}

// word is text, where true and false count as the words that they are.
func (v value) word() (string, bool) {
	if b, isBool := v.node.(*ast.BoolNode); isBool {
		return b.GetToken().Value, true
	}
	return v.text()
}

// integer reads a whole number between least and most.
func (v value) integer(least, most int) (int, bool) {
	remedy := fmt.Sprintf("write a whole number from %d to %d", least, most)
	s, ok := v.scalar()
	if _, whole := v.node.(*ast.IntegerNode); !ok || !whole {
		v.fail(remedy, "a whole number is expected, not %s", v.kind())
		return 0, false
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		v.fail(remedy, "%s is not a whole number in the range", show(s))
		return 0, false
	}
	return n, true
}

// boolean reads true or false.
func (v value) boolean() (result, ok bool) {
	if b, isBool := v.node.(*ast.BoolNode); isBool {
		return b.Value, true
	}
	v.fail("write true or false", "true or false is expected, not %s", v.kind())
	return false, false
}

// oneOf reads one of a few words.
func (v value) oneOf(words ...string) (string, bool) {
	s, ok := v.text()
	if !ok {
		return "", false
	}
	for _, w := range words {
		if s == w {
			return s, true
		}
	}
	v.fail(choose(s, words), "%s is not one of %s", show(s), strings.Join(words, ", "))
	return "", false
}

// kind names what the node is, without its text.
func (v value) kind() string {
	switch v.node.(type) {
	case nil, *ast.NullNode:
		return "an empty value"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode:
		return "a whole number"
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a decimal number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a group of keys"
	case *ast.AliasNode:
		return "an alias whose anchor is not in this file"
	case *ast.TagNode:
		return "a tagged value (tags are not used here)"
	}
	return "something else"
}

// list reads a list that is not empty. It returns nil after a problem.
func (v value) list() []value {
	seq, ok := v.node.(*ast.SequenceNode)
	switch {
	case v.isNull():
		v.fail("write at least one entry, or leave the key out", "there is no value")
	case !ok:
		v.fail("write a list, such as [a, b]", "a list is expected, not %s", v.kind())
	case len(seq.Values) == 0:
		v.fail("write at least one entry, or leave the key out", "the list is empty")
	default:
		entries := make([]value, len(seq.Values))
		for i, n := range seq.Values {
			entries[i] = value{doc: v.doc, node: v.doc.resolve(n), path: fmt.Sprintf("%s[%d]", v.path, i)}
		}
		return entries
	}
	return nil
}
