package strictyaml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Value is a node of a document with the path that leads to it. Its readers report
// what does not fit and then return false or nothing.
type Value struct {
	doc    *Document
	node   ast.Node
	key    ast.MapKeyNode // the key that it stands under, nil for the root and for entries of a list
	path   string         // "source.timezone", "load[0].path"
	secret bool           // its text must never be shown
}

// Given tells whether the file has the value.
func (v Value) Given() bool { return v.node != nil }

// Path is the path of keys that leads to the value, such as
// "source.timezone" or "load[0].path".
func (v Value) Path() string { return v.path }

// Key is the key that the value stands under, "" for the root and for
// entries of a list.
func (v Value) Key() string { return keyText(v.key) }

// Line is the line of the file that the value stands on, from 1.
func (v Value) Line() int { return at(v.place(), Problem{}).Line }

// IsGroup tells whether the value is a group of keys.
func (v Value) IsGroup() bool {
	_, group := v.node.(ast.MapNode)
	return group
}

// Hidden is the same value, but problems with it never show its text.
func (v Value) Hidden() Value {
	v.secret = true
	return v
}

// Renamed is the same value, but problems with it name another path of keys.
func (v Value) Renamed(path string) Value {
	v.path = path
	return v
}

// IsEmpty tells whether the key stands there without a value.
func (v Value) IsEmpty() bool {
	_, null := v.node.(*ast.NullNode)
	return v.node == nil || null
}

// Redact is what [Document.Redact] is.
func (v Value) Redact(rewrite func(string) string) { v.doc.Redact(rewrite) }

// Report adds a problem that has a place already, such as one of another file that
// the value names.
func (v Value) Report(p Problem) { v.doc.problems = append(v.doc.problems, p) }

// Refused tells whether a problem was reported for a key of the section. Fail may have
// reported its value, an entry of its list or the section itself. Section may have
// reported that the key is missing.
func (v Value) Refused(key string) bool {
	return v.doc.refused[v.path] || v.doc.refused[JoinKeys(v.path, key)]
}

// FailWith reports an error whose text is "what; remedy". An error without a remedy
// gets the one given as otherwise.
func (v Value) FailWith(err error, otherwise string) {
	message, remedy := err.Error(), otherwise
	if i := strings.LastIndex(message, "; "); i >= 0 { // the last one: the quoted value may hold a semicolon too
		message, remedy = message[:i], message[i+2:]
	}
	v.Fail(remedy, "%s", message)
}

// Fail reports a problem with the value. The message may hold the value only as
// [Quote] gives it.
func (v Value) Fail(remedy, format string, args ...any) {
	if v.doc.unread[v.node] {
		return // it has its problem
	}
	v.doc.refused[v.path] = true
	if i := strings.LastIndexByte(v.path, '['); v.key == nil && i > 0 { // an entry is refused with its list
		v.doc.refused[v.path[:i]] = true
	}
	v.Report(*at(v.place(), Problem{Key: v.path, Message: fmt.Sprintf(format, args...), Remedy: remedy}))
}

// place is the token to point at: the scalar itself, else the key.
func (v Value) place() *token.Token {
	if _, ok := v.Scalar(); !ok && v.key != nil {
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

const notShown = "(a value that may hold a secret)"

// shown is a value's text for a message.
func shown(v Value, text string) string {
	if v.secret {
		return notShown
	}
	return Quote(text)
}

// Quote quotes a value for a message and cuts long ones. A value that mentions a key
// or a password is not shown: where a quote is never closed, the value holds the
// lines after it.
func Quote(s string) string {
	const most = 80
	if mentionsSecret(strings.ToLower(s)) {
		return notShown
	}
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// Scalar returns the text of a scalar as it was written, so that a number keeps its
// leading zeros. It reports nothing.
func (v Value) Scalar() (string, bool) {
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

// Text reads a string that is not empty. A number is taken as written, so
// that ids and years need no quotes.
func (v Value) Text() (string, bool) {
	s, ok := v.Scalar()
	switch {
	case v.IsEmpty():
		v.Fail("write a value after the colon, or leave the key out", "there is no value")
	case !ok:
		v.Fail("write one value, in quotes if it reads true, false or null", "text is expected, not %s", v.Kind())
	case s == "":
		v.Fail("write a value, or leave the key out", "the value is empty")
	case strings.ContainsRune(s, 0):
		v.Fail("remove the character", "the value holds the character NUL")
	default:
		return s, true
	}
	return "", false
}

// Word reads a text as Text does, and takes true and false as words.
func (v Value) Word() (string, bool) {
	if b, isBool := v.node.(*ast.BoolNode); isBool {
		return b.GetToken().Value, true
	}
	return v.Text()
}

// Boolean reads true or false.
func (v Value) Boolean() (result, ok bool) {
	if b, isBool := v.node.(*ast.BoolNode); isBool {
		return b.Value, true
	}
	if s, _ := v.Scalar(); v.doc.expanded[v.node] && (s == "true" || s == "false") {
		return s == "true", true
	}
	v.Fail("write true or false", "true or false is expected, not %s", v.Kind())
	return false, false
}

// OneOf reads one of a few words.
func (v Value) OneOf(words ...string) (string, bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	if slices.Contains(words, s) {
		return s, true
	}
	list := strings.Join(words, ", ")
	v.Fail(Suggest(s, words, "write one of "+list), "%s is not one of %s", shown(v, s), list)
	return "", false
}

// Kind names what the node is, without its text.
func (v Value) Kind() string {
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

// List reads a list that is not empty. It returns nil after a problem.
func (v Value) List() []Value {
	seq, ok := v.node.(*ast.SequenceNode)
	switch {
	case v.IsEmpty():
		v.Fail("write at least one entry", "there is no value")
	case !ok:
		v.Fail("write a list, such as [a, b]", "a list is expected, not %s", v.Kind())
	case len(seq.Values) == 0:
		v.Fail("write at least one entry", "the list is empty")
	default:
		return entriesOf(v, seq)
	}
	return nil
}

// entriesOf returns the entries of a list that v is.
func entriesOf(v Value, list *ast.SequenceNode) []Value {
	entries := make([]Value, len(list.Values))
	for i, n := range list.Values {
		entries[i] = Value{doc: v.doc, node: v.doc.resolve(n), path: fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return entries
}

// mentionsSecret tells whether a text in small letters names a key or a password.
func mentionsSecret(lower string) bool {
	return slices.ContainsFunc([]string{"api_key", "apikey", "api-key", "secret", "password"}, func(word string) bool { return strings.Contains(lower, word) })
}
