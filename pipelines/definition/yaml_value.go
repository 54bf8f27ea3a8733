package definition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is a node of a YAML document with the path of keys that leads to it. Its methods that
// read it report a problem with what does not fit, and then return false or nothing.
type value struct {
	doc    *document
	node   *yaml.Node // never a YAML alias; nil if the file does not have the value
	key    *yaml.Node // the key that the value stands under, nil for the root and for entries of a list
	path   string     // path of keys, such as "source.timezone" or "load[0].path"
	secret bool       // the value's text must never be shown
}

// Given tells whether the value stands in the file.
func (v value) Given() bool { return v.node != nil }

// Key is the key that the value stands under, "" for the root and for
// entries of a list.
func (v value) Key() string {
	if v.key == nil {
		return ""
	}
	return v.key.Value
}

// Line is the line of the file that the value stands on, from 1.
func (v value) Line() int { return max(v.place().Line, 1) }

// IsGroup tells whether the value is a group of keys.
func (v value) IsGroup() bool { return v.is(yaml.MappingNode) }

// is tells whether the value is a YAML node of a kind (mapping, sequence, scalar) that the file
// gives no tag, such as !!binary.
func (v value) is(kind yaml.Kind) bool {
	return v.node != nil && v.node.Kind == kind && v.node.Style&yaml.TaggedStyle == 0
}

// tag is the type that YAML gives the value, such as "!!int"; "" if the file lacks the value.
func (v value) tag() string {
	if v.node == nil {
		return ""
	}
	return v.node.ShortTag()
}

// Hidden returns the same value, marked so that problems with the value never show its text.
func (v value) Hidden() value {
	v.secret = true
	return v
}

// IsEmpty tells whether the file lacks the value: there is no key, or a key with nothing or null
// behind it.
func (v value) IsEmpty() bool { return v.node == nil || v.tag() == "!!null" }

// Refused tells whether a problem was reported for a key of the section v: with the key's value,
// with an entry of its list, with the whole section, or that the key is missing.
func (v value) Refused(key string) bool {
	return v.doc.refused[v.path] || v.doc.refused[joinKeys(v.path, key)]
}

// FailWith reports err as a problem with the value. Its text is "what; remedy"; if it has no
// remedy, otherwise is the remedy.
func (v value) FailWith(err error, otherwise string) {
	message, remedy := err.Error(), otherwise
	if i := strings.LastIndex(message, "; "); i >= 0 {
		// The last semicolon divides: a value quoted in the message may hold one too.
		message, remedy = message[:i], message[i+2:]
	}
	v.Fail(remedy, "%s", message)
}

// Fail reports a problem with the value, with a message of format and args. The message may hold
// the value only as [Quote] gives it.
func (v value) Fail(remedy, format string, args ...any) {
	if v.doc.unread[v.node] {
		return // expandTexts has reported a problem with this value already
	}
	v.doc.refused[v.path] = true
	if i := strings.LastIndexByte(v.path, '['); v.key == nil && i > 0 {
		// A problem with an entry of a list counts as a problem with the list.
		v.doc.refused[v.path[:i]] = true
	}
	v.doc.report(v.place(), v.path, fmt.Sprintf(format, args...), remedy)
}

// Warn notes what most likely is a mistake in the value, though the file can be used. Its arguments
// are those of Fail.
func (v value) Warn(remedy, format string, args ...any) {
	v.doc.warnings = append(v.doc.warnings, v.doc.problemAt(v.place(), v.path, fmt.Sprintf(format, args...), remedy))
}

// place is the node whose line and column a problem names: a scalar itself, for a group or list
// its key.
func (v value) place() *yaml.Node {
	if _, ok := v.Scalar(); !ok && v.key != nil {
		return v.key
	}
	return v.node
}

const notShown = "(a value that may hold a secret)"

// shown returns the text of the value v as a message may show it, quoted or as "not shown".
func shown(v value, text string) string {
	if v.secret {
		return notShown
	}
	return Quote(text)
}

// Quote quotes a value for a message, cut after 80 characters. A value that mentions an API key
// or a password is not shown: where a file lacks a closing quote, the value holds the file's
// next lines.
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

// Scalar returns the text of a scalar as it was written, so that a number keeps its leading
// zeros. It returns false for a list, a group, null, true and false, and reports no problem.
func (v value) Scalar() (string, bool) {
	if !v.is(yaml.ScalarNode) || v.tag() == "!!null" || v.tag() == "!!bool" {
		return "", false
	}
	return v.node.Value, true
}

// Text reads a string that is not empty, and reports a problem with anything else. A number is
// taken as written, so that ids and years need no quotes.
func (v value) Text() (string, bool) {
	s, ok := v.Scalar()
	switch {
	case v.IsEmpty():
		v.Fail("write a value after the colon, or leave the key out if it is optional", "there is no value")
	case !ok:
		v.Fail("write one value, in quotes if it is true, false or null", "text is expected, not %s", v.Kind())
	case s == "":
		v.Fail("write a value, or leave the key out if it is optional", "the value is empty")
	case strings.ContainsRune(s, 0):
		v.Fail("remove the character", "the value contains the character NUL")
	default:
		return s, true
	}
	return "", false
}

// Word reads a text as Text does, and takes true and false as texts too.
func (v value) Word() (string, bool) {
	if v.tag() == "!!bool" {
		return v.node.Value, true
	}
	return v.Text()
}

// Boolean reads true or false as result. ok is false after a problem, which it reports.
func (v value) Boolean() (result, ok bool) {
	if v.tag() == "!!bool" {
		return strings.EqualFold(v.node.Value, "true"), true
	}
	if s, _ := v.Scalar(); v.doc.expanded[v.node] && (s == "true" || s == "false") {
		return s == "true", true
	}
	v.Fail("write true or false", "true or false is expected, not %s", v.Kind())
	return false, false
}

// OneOf reads a text that must be one of words. It returns false after a problem.
func (v value) OneOf(words ...string) (string, bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	if slices.Contains(words, s) {
		return s, true
	}
	list := strings.Join(words, ", ")
	v.Fail(suggest(s, words, "write one of them"), "%s is not one of %s", shown(v, s), list)
	return "", false
}

// Kind says for a message what the value is, such as "a list" or "text", without its content.
func (v value) Kind() string {
	switch {
	case v.IsEmpty():
		return "an empty value"
	case v.node.Style&yaml.TaggedStyle != 0:
		return "a value with a YAML tag, such as !!str"
	case v.node.Kind == yaml.MappingNode:
		return "a group of keys"
	case v.node.Kind == yaml.SequenceNode:
		return "a list"
	case v.tag() == "!!int":
		return "a whole number"
	case v.tag() == "!!float":
		return "a decimal number"
	case v.tag() == "!!bool":
		return "true or false"
	}
	return "text"
}

// List reads a list that is not empty. It returns nil after a problem.
func (v value) List() []value {
	switch {
	case v.IsEmpty():
		v.Fail("write at least one entry", "there is no value")
	case !v.is(yaml.SequenceNode):
		v.Fail("write a list, such as [a, b]", "a list is expected, not %s", v.Kind())
	case len(v.node.Content) == 0:
		v.Fail("write at least one entry", "the list is empty")
	default:
		return v.elements()
	}
	return nil
}

// elements returns the entries of v, which is a list.
func (v value) elements() []value {
	entries := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		entries[i] = value{doc: v.doc, node: followed(n), path: fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return entries
}

// mentionsSecret tells whether a text in small letters names a key or a password.
func mentionsSecret(lower string) bool {
	return slices.ContainsFunc([]string{"api_key", "apikey", "api-key", "secret", "password"}, func(word string) bool { return strings.Contains(lower, word) })
}

// expandTexts rewrites the texts of v and of all values below it, in the order of the file.
// rewrite gets each value with its text, and returns the text to put in its place. If rewrite
// reports a problem with the value, later problems with the value are dropped. Keys are not
// rewritten. A text that was rewritten is read as if the file held it without quotes, so that
// it may be a number or true.
func expandTexts(v value, rewrite func(v value, text string) string) {
	expand(v, rewrite, map[*yaml.Node]bool{})
}

func expand(v value, rewrite func(value, string) string, seen map[*yaml.Node]bool) {
	if v.node == nil || seen[v.node] { // a YAML alias leads to a node that was rewritten already
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
