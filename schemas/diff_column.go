package schemas

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// diffColumn returns what changed about a column, except for its place.
func diffColumn(was, is Column) []Change {
	d := differ{from: is.From.String(), column: is.Name}
	if was.Name != is.Name {
		d.add(ColumnRenamed, "", was.Name, is.Name, true)
	}
	if was.Label != "" && is.Label != "" && was.Label != is.Label {
		d.add(ColumnRelabelled, "", was.Label, is.Label, false)
	}
	if !was.Type.Equal(is.Type) {
		d.add(ColumnRetyped, "type", was.Type.String(), is.Type.String(), true)
	}
	d.texts(ColumnRetyped, "format", was.Reading.Formats, is.Reading.Formats)
	d.texts(ColumnRetyped, "true_values", was.Reading.True, is.Reading.True)
	d.texts(ColumnRetyped, "false_values", was.Reading.False, is.Reading.False)
	d.texts(ColumnRetyped, "decimal_separator", []string{cmp.Or(was.Reading.Decimal, ".")}, []string{cmp.Or(is.Reading.Decimal, ".")})
	d.texts(ColumnRetyped, "group_separator", []string{was.Reading.Group}, []string{is.Reading.Group})
	d.rule("nullable", strconv.FormatBool(!was.Required), strconv.FormatBool(!is.Required), was.Required)
	d.rule("on_error", string(was.ErrorRule()), string(is.ErrorRule()), false)
	d.rule("pii", cmp.Or(was.PII.String(), "none"), cmp.Or(is.PII.String(), "none"), true)
	d.rule("list_as", string(cmp.Or(was.ListAs, ListJoined)), string(cmp.Or(is.ListAs, ListJoined)), true)
	d.texts(RuleChanged, "choices", was.Choices, is.Choices)
	d.rule("other", string(cmp.Or(was.Other, "default")), string(cmp.Or(is.Other, "default")), true)
	d.rule("explode", strconv.FormatBool(was.Explode), strconv.FormatBool(is.Explode), was.Explode)
	return d.changes
}

// ErrorRule returns what happens to a value that does not fit the column, with
// defaults filled in. Columns that nobody declared never reject a result.
func (c Column) ErrorRule() OnError {
	if c.Inferred {
		return OnErrorSetNull
	}
	return cmp.Or(c.OnError, OnErrorReject)
}

// diffRules returns the changes of the rules of the whole schema.
func diffRules(was, is *Schema) []Change {
	var d differ
	d.rule("unknown", string(cmp.Or(was.Unknown, UnknownAdd)), string(cmp.Or(is.Unknown, UnknownAdd)), is.Unknown == UnknownFail)
	d.rule("max_rejects", strconv.Itoa(was.MaxRejects), strconv.Itoa(is.MaxRejects), false)
	d.rule("max_columns", strconv.Itoa(was.MostColumns()), strconv.Itoa(is.MostColumns()), false)
	d.rule("empty", string(cmp.Or(was.Empty, EmptyKeep)), string(cmp.Or(is.Empty, EmptyKeep)), true)
	if was.Needs(PIIHMAC) && is.Needs(PIIHMAC) {
		a, b := was.HMACKey.ID(), is.HMACKey.ID()
		if a == "" || b == "" { // without both keys, their references are compared
			a, b = cmp.Or(was.HMACReference, "default"), cmp.Or(is.HMACReference, "default")
		}
		d.rule("hmac_key", a, b, true)
	}
	return d.changes
}

// differ gathers the changes of one column, or of a schema.
type differ struct {
	from, column string
	changes      []Change
}

func (d *differ) add(kind ChangeKind, key, was, is string, breaking bool) {
	d.changes = append(d.changes, Change{Kind: kind, From: d.from, Column: d.column, Key: key, Was: was, Is: is, Breaking: breaking})
}

func (d *differ) rule(key, was, is string, breaking bool) {
	if was != is {
		d.add(RuleChanged, key, was, is, breaking)
	}
}

// texts compares two lists of texts, such as formats or words. Texts that are appended to the
// old ones are no breaking change, because old values are still read as before. An empty list
// means a default, so a first text is a breaking change.
func (d *differ) texts(kind ChangeKind, key string, was, is []string) {
	if !slices.Equal(was, is) {
		appended := len(was) > 0 && len(is) >= len(was) && slices.Equal(was, is[:len(was)])
		d.add(kind, key, quoted(was), quoted(is), !appended)
	}
}

// quoted returns the texts in quotes, so that blanks and signs show. It returns "default" for none.
func quoted(texts []string) string {
	if len(texts) == 0 || len(texts) == 1 && texts[0] == "" {
		return "default"
	}
	list := make([]string, len(texts))
	for i, t := range texts {
		list[i] = strconv.Quote(t)
	}
	return strings.Join(list, ", ")
}
