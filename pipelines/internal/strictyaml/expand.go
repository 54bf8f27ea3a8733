package strictyaml

import "go.yaml.in/yaml/v3"

// Expand rewrites the texts of all values below v, in the order of the file. rewrite
// gets each text with its value, and returns the text that stands in its place. Where it
// reports a problem with the value, later problems with the value are dropped. Keys stay
// as they are. A text that was rewritten is read as if the file held it without quotes,
// so that it may be a number or true.
func Expand(v Value, rewrite func(v Value, text string) string) {
	expand(v, rewrite, map[*yaml.Node]bool{})
}

func expand(v Value, rewrite func(Value, string) string, seen map[*yaml.Node]bool) {
	if v.node == nil || seen[v.node] { // an alias leads to a node that was rewritten
		return
	}
	seen[v.node] = true
	switch {
	case v.is(yaml.MappingNode):
		entries, _ := v.Entries()
		for _, e := range entries {
			expand(e, rewrite, seen)
		}
	case v.is(yaml.SequenceNode):
		for _, e := range v.elements() {
			expand(e, rewrite, seen)
		}
	case v.is(yaml.ScalarNode) && v.tag() == "!!str":
		before := len(v.doc.problems)
		written := rewrite(v, v.node.Value)
		switch {
		case len(v.doc.problems) > before:
			v.doc.unread[v.node] = true
		case written != v.node.Value:
			v.node.Value = written
			v.doc.expanded[v.node] = true
		}
	}
}
