package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// field is a key that a section may have, and the function that reads the key's value. The
// function may be nil.
type field struct {
	key      string
	required bool
	read     func(value)
}

// required makes the field of a key that a section must have.
func required(key string, read func(value)) field { return field{key, true, read} }

// optional makes the field of a key that a section may have.
func optional(key string, read func(value)) field { return field{key, false, read} }

// Section reads a group of keys, in the order of the fields and not of the file. Unknown,
// repeated and missing keys are reported as problems, so that only the keys of the fields are
// accepted. Section returns the values by key, nil if v is no group of keys.
func (v value) Section(fields ...field) map[string]value {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	entries, ok := v.Entries()
	if !ok {
		return nil
	}
	values := map[string]value{}
	for _, child := range entries {
		name := child.Key()
		if !slices.Contains(keys, name) {
			v.unknownKey(child, keys)
			continue
		}
		if first, twice := values[name]; twice {
			v.badKey(child, name, fmt.Sprintf("the setting appears twice, first on line %d", first.Line()), "keep one of them")
			continue
		}
		values[name] = child
	}
	for _, f := range fields {
		switch child, given := values[f.key]; {
		case given && f.read != nil:
			f.read(child)
		case !given && f.required:
			path := joinKeys(v.path, f.key)
			v.doc.refused[path] = true
			v.doc.report(v.place(), path, "the required setting is missing", "add "+f.key+":")
		}
	}
	return values
}

// Entries returns the values of a group of keys in the order of the file. It accepts any keys,
// repeated ones too. A key without a value is an empty group, because all lines under the key
// may be commented out. For what is no group Entries reports a problem and returns false.
func (v value) Entries() ([]value, bool) {
	if v.IsEmpty() {
		return nil, true
	}
	if !v.is(yaml.MappingNode) { // hidden in the problem, because the value may be a secret
		v.Hidden().Fail("write keys with values, such as name: feedback, with a space after each colon, indented below the key that they belong to; if this is the whole file, give a definition or a schema file", "a group of keys is expected, not %s", v.Kind())
		return nil, false
	}
	var entries []value
	for i := 0; i < len(v.node.Content); i += 2 {
		key := followed(v.node.Content[i])
		entries = append(entries, value{
			doc: v.doc, node: followed(v.node.Content[i+1]), key: key, path: joinKeys(v.path, key.Value), secret: v.secret,
		})
	}
	return entries, true
}

// unknownKey reports an entry of the section v whose key is none of keys.
func (v value) unknownKey(entry value, keys []string) {
	name := entry.Key()
	shown := name
	if !harmless.MatchString(name) || entry.IsEmpty() {
		shown = "" // the "key" may be a secret whose key was left out, such as {word}
	}
	v.badKey(entry, shown, "the setting is not known", suggest(name, keys, "the settings here are "+strings.Join(keys, ", ")))
}

// badKey reports a problem with the key of an entry of the section v. If name is "", the
// message does not show the key.
func (v value) badKey(entry value, name, message, remedy string) {
	path := v.path
	if name != "" {
		path = joinKeys(v.path, name)
	}
	v.doc.report(entry.key, path, message, remedy)
}

// harmless is the shape of an unknown key that messages may show, because it looks like a key of
// YAML and not like a secret.
var harmless = regexp.MustCompile(`^[a-zA-Z_-]{1,24}$`)

// joinKeys returns the path of a key, such as "source.timezone", from the path of its section.
func joinKeys(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// The functions into… below make readers for the fields of a section. Such a reader stores the
// value that it read in target; after a problem target stays as it was.

// intoText makes a reader of a text that is not empty, as [value.Text] reads it.
func intoText(target *string) func(value) { return into(target, value.Text) }

// intoBoolean makes a reader of true or false.
func intoBoolean(target *bool) func(value) { return into(target, value.Boolean) }

// intoInteger makes a reader of a whole number from least to most, both included.
func intoInteger(target *int, least, most int) func(value) {
	return into(target, func(v value) (int, bool) {
		remedy := fmt.Sprintf("write a whole number from %d to %d", least, most)
		s, _ := v.Scalar()
		if v.tag() != "!!int" && !v.doc.expanded[v.node] {
			v.Fail(remedy, "a whole number is expected, not %s", v.Kind())
			return 0, false
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			v.Fail(remedy, "%s is not a whole number in the range", shown(v, s))
			return 0, false
		}
		return n, true
	})
}

// intoOneOf makes a reader of a value that must be one of the words.
func intoOneOf[T ~string](target *T, words ...T) func(value) {
	return into(target, func(v value) (T, bool) { return pick(v, words, func(w T) string { return string(w) }) })
}

// pick reads a name and returns the element of from that has it. Where none has, it reports a
// problem and returns false.
func pick[T any](v value, from []T, name func(T) string) (picked T, ok bool) {
	names := make([]string, len(from))
	for i, x := range from {
		names[i] = name(x)
	}
	word, ok := v.OneOf(names...)
	if !ok {
		return picked, false
	}
	return from[slices.Index(names, word)], true
}

// intoChoice makes a reader of one of two words; target becomes true for the second word.
func intoChoice(target *bool, first, second string) func(value) {
	return into(target, func(v value) (bool, bool) {
		word, ok := v.OneOf(first, second)
		return word == second, ok
	})
}

// intoParsed makes a reader of a text that parse turns into a value. Errors of parse are
// reported by [value.FailWith], with otherwise as the remedy where they have none.
func intoParsed[T any](target *T, parse func(string) (T, error), otherwise string) func(value) {
	return into(target, func(v value) (parsed T, ok bool) {
		text, ok := v.Text()
		if !ok {
			return parsed, false
		}
		parsed, err := parse(text)
		if err != nil {
			v.FailWith(err, otherwise)
		}
		return parsed, err == nil
	})
}

func into[T any](target *T, read func(value) (T, bool)) func(value) {
	return func(v value) {
		if x, ok := read(v); ok {
			*target = x
		}
	}
}
