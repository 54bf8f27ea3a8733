package strictyaml

import "github.com/goccy/go-yaml/ast"

// Expand rewrites the texts of all values below v, in the order of the file. rewrite
// gets each text with its value, and returns the text that stands in its place. Where it
// reports a problem with the value, later problems with the value are dropped. Keys stay
// as they are. A text that was rewritten is read as if the file held it without quotes,
// so that it may be a number or true.
func Expand(v Value, rewrite func(v Value, text string) string) {
	expand(v, rewrite, map[ast.Node]bool{})
}

func expand(v Value, rewrite func(Value, string) string, seen map[ast.Node]bool) {
	if v.node == nil || seen[v.node] { // an alias leads to a node that was rewritten
		return
	}
	seen[v.node] = true
	switch n := v.node.(type) {
	case ast.MapNode:
		entries, _ := v.Entries()
		for _, e := range entries {
			expand(e, rewrite, seen)
		}
	case *ast.SequenceNode:
		for _, e := range entriesOf(v, n) {
			expand(e, rewrite, seen)
		}
	case *ast.StringNode:
		replace(v, &n.Value, rewrite)
	case *ast.LiteralNode:
		replace(v, &n.Value.Value, rewrite)
	}
}

func replace(v Value, text *string, rewrite func(Value, string) string) {
	before := len(v.doc.problems)
	written := rewrite(v, *text)
	switch {
	case len(v.doc.problems) > before:
		v.doc.unread[v.node] = true
	case written != *text:
		*text = written
		v.doc.expanded[v.node] = true
	}
}
