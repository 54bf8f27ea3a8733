package schemas

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// elem returns the type of a list's elements. For other types it returns the type itself.
func (t Type) elem() Type {
	if t.Kind == List && t.Elem != nil {
		return *t.Elem
	}
	return t
}

// rules checks all settings of a column except its name, source and type.
func (v *validator) rules(i int, c Column) {
	v.reading(i, c)
	if c.Required && c.OnError == OnErrorSetNull {
		v.add(i, "nullable", "nullable: false and on_error: set_null contradict each other; remove one of them")
	}
	if c.Required && !c.Written() {
		v.add(i, "nullable", "pii: drop leaves the column out, so that nullable: false cannot be checked; remove nullable")
	}
	v.pii(i, c)
	v.lists(i, c)
	v.other(i, c)
}

// reading checks the settings by which the column's values are read.
func (v *validator) reading(i int, c Column) {
	kind, r := c.Type.elem().Kind, c.Reading
	number := kind == Int64 || kind == Float64 || kind == Decimal
	if len(r.Formats) > 0 && kind != Date && kind != Timestamp {
		v.add(i, "format", "a format needs the type date or timestamp, not %s", c.Type)
	} else {
		v.formats(i, kind, r.Formats)
	}
	if (len(r.True) > 0 || len(r.False) > 0) && kind != Bool {
		v.add(i, "true_values", "true_values and false_values need the type bool, not %s", c.Type)
	} else {
		v.words(i, r)
	}
	if r.Decimal != "" && kind != Float64 && kind != Decimal {
		v.add(i, "decimal_separator", "decimal_separator needs the type float64 or decimal, not %s", c.Type)
	}
	if r.Group != "" && !number {
		v.add(i, "group_separator", "group_separator needs the type int64, float64 or decimal, not %s", c.Type)
	}
	if c.From.Kind == FromResultID && (r.Group != "" || len(r.Formats) > 0) {
		v.add(i, "from", "format: and group_separator: are not for the result's id; remove them")
	}
	v.separator(i, "decimal_separator", r.Decimal)
	v.separator(i, "group_separator", r.Group)
	if r.Group == cmp.Or(r.Decimal, ".") && kind != Int64 {
		v.add(i, "group_separator", "%q is the decimal separator already (that is . unless decimal_separator is given); use another sign", r.Group)
	}
}

// formats checks that every format compiles and fits the type.
func (v *validator) formats(i int, kind TypeKind, texts []string) {
	for at, text := range texts {
		f, err := ParseFormat(text)
		switch {
		case err != nil:
			v.add(i, "format", "%v", err)
		case kind == Date && f.HasTime():
			v.add(i, "format", "the format %q has a time of day, but a date has none; use the type timestamp, or a format without a time", text)
		case slices.Contains(texts[:at], text):
			v.add(i, "format", "the format %q is listed twice", text)
		}
	}
}

// words checks the words for true and false of a bool.
func (v *validator) words(i int, r Reading) {
	if (len(r.True) > 0) != (len(r.False) > 0) {
		v.add(i, "true_values", "write both true_values and false_values")
		return
	}
	var seen []string
	check := func(key string, words []string) {
		for _, w := range words {
			w = strings.TrimSpace(w)
			switch {
			case w == "":
				v.add(i, key, "one of the words is empty; remove it, because an empty answer is null in any case")
			case slices.ContainsFunc(seen, func(s string) bool { return strings.EqualFold(s, w) }):
				v.add(i, key, "the word %q is listed twice (upper and lower case are the same)", w)
			}
			seen = append(seen, w)
		}
	}
	check("true_values", r.True)
	check("false_values", r.False)
}

// separator checks the sign that separates a number's fraction or its groups of digits.
func (v *validator) separator(i int, key, sign string) {
	if sign == "" {
		return
	}
	r, size := utf8.DecodeRuneInString(sign)
	if size != len(sign) || r >= '0' && r <= '9' || strings.ContainsAny(sign, "+-eE") {
		v.add(i, key, "%q cannot be a separator; use one character other than a digit, a sign or e", sign)
	}
}

// pii checks how column i treats personal data: the protection must be known and
// must suit the column's type.
func (v *validator) pii(i int, c Column) {
	kind := c.PII.Kind
	switch {
	case kind == PIINone:
	case c.From.Kind == FromResultID:
		v.add(i, "pii", "the result's id cannot be hidden, because it tells results apart; remove pii")
	case kind != PIIDrop && c.Type.elem().Kind != String:
		v.add(i, "pii", "pii: %s needs the type string or list<string>, not %s; pii: drop works with any type", c.PII, c.Type)
	}
}

// other checks where the texts stand that people typed beside choices.
func (v *validator) other(i int, c Column) {
	v.oneOf(i, "other", string(c.Other), string(OtherColumn), string(OtherInline))
	switch texts := (Source{FromOther, c.From.ID}); {
	case c.Other == "":
	case c.From.Kind != FromItem:
		v.add(i, "other", "other is for columns from item:ID, but this one is from %s; remove other", c.From)
	case c.Other == OtherInline && c.ListAs == ListColumns:
		v.add(i, "other", "with list_as: columns, inline would make a column of each text that people type; use column, or list_as: joined or json")
	case c.Other == OtherInline && v.schema.Find(texts) >= 0:
		v.add(i, "other", "other: inline puts the typed texts into this column, so the column from %[1]s would be empty; write other: column here, or remove the column from %[1]s", texts)
	}
}

// lists checks the settings by which a column of lists is shown.
func (v *validator) lists(i int, c Column) {
	v.oneOf(i, "list_as", string(c.ListAs), string(ListJoined), string(ListJSON), string(ListColumns))
	list := c.Type.Kind == List
	switch {
	case c.ListAs != "" && !list:
		v.add(i, "list_as", "list_as is for lists, but the type is %s; remove list_as, or write type: list<string>", c.Type)
	case c.ListAs == ListColumns && c.Type.elem().Kind != String:
		v.add(i, "list_as", "list_as: columns needs the type list<string>, not %s", c.Type)
	case c.ListAs == ListColumns && c.PII.Kind != PIINone:
		v.add(i, "list_as", "list_as: columns would show in the columns' names what pii: %s hides; remove one of them", c.PII)
	}
	counted := c.From.Kind == FromItem && c.Type.Kind == String // for the codebook
	if len(c.Choices) > 0 && c.ListAs != ListColumns && !counted && !v.schema.Apart(c) {
		v.add(i, "choices", "choices have no effect here: they are for questions (from: item:ID) of type string, for list_as: columns, and for other: column; remove them")
	}
	seen := map[string]bool{}
	for _, choice := range c.Choices {
		if seen[choice] {
			v.add(i, "choices", "the choice %q is listed twice", choice)
		}
		seen[choice] = true
	}
	if !c.Explode {
		return
	}
	switch {
	case !list:
		v.add(i, "explode", "explode is for lists, but the type is %s; remove explode, or write type: list<string>", c.Type)
	case !c.Written():
		v.add(i, "explode", "explode does nothing for a column with pii: drop; remove one of them")
	case !v.hasID:
		v.add(i, "explode", "explode needs a column with the result's id, by which the rows of the list are found; add {name: id, from: result_id, type: int64}")
	}
}
