package strictyaml

import (
	"fmt"
	"strconv"
)

// The readers of this file keep a value in a variable: they are for the fields of a
// section. After a problem the variable stays as it was.

// Text reads a text as [Value.Text] does.
func Text(target *string) func(Value) { return into(target, Value.Text) }

// Boolean reads true or false.
func Boolean(target *bool) func(Value) { return into(target, Value.Boolean) }

// Integer reads a whole number between least and most.
func Integer(target *int, least, most int) func(Value) {
	return into(target, func(v Value) (int, bool) {
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

// OneOf reads one of a few words.
func OneOf[T ~string](target *T, words ...T) func(Value) {
	return into(target, func(v Value) (T, bool) {
		plain := make([]string, len(words))
		for i, w := range words {
			plain[i] = string(w)
		}
		word, ok := v.OneOf(plain...)
		return T(word), ok
	})
}

// Choice reads one of two words and tells whether it is the second.
func Choice(target *bool, first, second string) func(Value) {
	return into(target, func(v Value) (bool, bool) {
		word, ok := v.OneOf(first, second)
		return word == second, ok
	})
}

// Parsed reads a text with a parser, whose errors are reported as [Value.FailWith]
// does.
func Parsed[T any](target *T, parse func(string) (T, error), otherwise string) func(Value) {
	return into(target, func(v Value) (parsed T, ok bool) {
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

func into[T any](target *T, read func(Value) (T, bool)) func(Value) {
	return func(v Value) {
		if x, ok := read(v); ok {
			*target = x
		}
	}
}
