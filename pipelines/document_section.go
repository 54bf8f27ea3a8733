package pipelines

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// field is a key of a section and what reads its value. The table of fields
// is all that the decoder knows of a section, so a key is accepted exactly if
// it is read.
type field struct {
	key      string
	required bool
	read     func(value)
}

// section reads a group of keys in the order of the table: unknown, repeated
// and missing keys are problems. It returns the values by key.
func (v value) section(fields ...field) map[string]value {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	v.doc.sections[indexless(v.path)] = keys

	entries, ok := v.entries()
	if !ok {
		return nil
	}
	values := map[string]value{}
	for _, e := range entries {
		name := keyText(e.key)
		child := value{doc: v.doc, node: v.doc.resolve(e.node), key: e.key, path: join(v.path, name), secret: v.secret}
		if _, merge := e.key.(*ast.MergeKeyNode); merge {
			v.badKey(e.key, "", "the merge key << is not used here", "write the keys out")
			continue
		}
		if !slices.Contains(keys, name) {
			v.unknownKey(e, name, keys)
			continue
		}
		if first, twice := values[name]; twice {
			v.badKey(e.key, name, "the key stands here a second time; the first is on line "+lineOf(first), "keep one of them")
			continue
		}
		values[name] = child
	}
	for _, f := range fields {
		child, given := values[f.key]
		switch {
		case given && f.read != nil:
			f.read(child)
		case !given && f.required:
			v.missing(f.key)
		}
	}
	return values
}

type entry struct {
	key  ast.MapKeyNode
	node ast.Node
}

// entries returns the keys and values of a group. A key without a value is an
// empty group: everything under it may be commented out.
func (v value) entries() ([]entry, bool) {
	if v.isNull() {
		return nil, true
	}
	group, ok := v.node.(ast.MapNode)
	if !ok {
		hidden := v
		hidden.secret = true // it may be anything
		hidden.fail("write keys and values below it, indented", "a group of keys is expected, not %s", v.kind())
		return nil, false
	}
	var entries []entry
	for it := group.MapRange(); it.Next(); {
		entries = append(entries, entry{it.Key(), it.Value()})
	}
	return entries, true
}

func (v value) missing(key string) {
	place := v.place()
	v.doc.problems = append(v.doc.problems, *at(place, Problem{
		Key: join(v.path, key), Message: "the key is required and missing", Remedy: "add " + lastKey(key) + ":",
	}))
}

func (v value) unknownKey(e entry, name string, keys []string) {
	shown := name
	if !harmless(name) || v.isFlowWord(e) {
		shown = "" // a secret without its key would be read as a key
	}
	remedy := "the keys here are " + strings.Join(keys, ", ")
	if near := nearest(name, keys); near != "" {
		remedy = "did you mean " + near + "?"
	} else if home := v.doc.home(name); home != "" && shown != "" {
		remedy = "it belongs " + home
	}
	v.badKey(e.key, shown, "the key is not known", remedy)
}

// isFlowWord tells whether the entry is a bare word in braces, {word}.
func (v value) isFlowWord(e entry) bool {
	_, null := e.node.(*ast.NullNode)
	return e.node == nil || null
}

func (v value) badKey(key ast.MapKeyNode, name, message, remedy string) {
	path := v.path
	if name != "" {
		path = join(v.path, name)
	}
	v.doc.problems = append(v.doc.problems, *at(key.GetToken(), Problem{Key: path, Message: message, Remedy: remedy}))
}

// harmless tells whether an unknown key can be shown: it looks like a key and
// not like a secret.
func harmless(name string) bool {
	if len(name) > 24 {
		return false
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-' {
			return false
		}
	}
	return name != ""
}

func keyText(key ast.MapKeyNode) string {
	switch k := key.(type) {
	case nil:
		return ""
	case *ast.StringNode:
		return k.Value
	case *ast.MappingKeyNode:
		if k.Value == nil {
			return ""
		}
		return k.Value.GetToken().Value
	}
	return key.GetToken().Value
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// indexless turns "load[3].csv" into "load[].csv".
func indexless(path string) string {
	var b strings.Builder
	inside := false
	for _, r := range path {
		switch {
		case r == '[':
			inside = true
			b.WriteString("[")
		case r == ']':
			inside = false
			b.WriteString("]")
		case !inside:
			b.WriteRune(r)
		}
	}
	return b.String()
}
