package definition

import (
	"slices"

	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// readColumn reads one column of a schema.
func (r *schemaReader) readColumn(v strictyaml.Value) {
	c := schemas.Column{OnError: schemas.OnErrorReject}
	check := func(read func(strictyaml.Value) bool) func(strictyaml.Value) {
		return func(v strictyaml.Value) {
			if !read(v) {
				r.bad[v.Path()] = true
			}
		}
	}
	fields := slices.Concat([]strictyaml.Field{
		strictyaml.Required("name", check(func(v strictyaml.Value) bool { return readText(v, &c.Name) })),
		strictyaml.Required("from", check(func(v strictyaml.Value) bool {
			return parseInto(v, &c.From, schemas.ParseSource, "write result_id, meta:ID or item:ID")
		})),
		strictyaml.Required("type", check(func(v strictyaml.Value) bool {
			return parseInto(v, &c.Type, schemas.ParseType, "write a type such as string, int64, decimal(12,2) or list<string>")
		})),
		strictyaml.Optional("nullable", check(func(v strictyaml.Value) bool {
			nullable, ok := v.Boolean()
			c.Required = ok && !nullable
			return ok
		})),
		strictyaml.Optional("on_error", check(func(v strictyaml.Value) bool {
			return readWord(v, &c.OnError, schemas.OnErrorReject, schemas.OnErrorFail, schemas.OnErrorSetNull)
		})),
		strictyaml.Optional("pii", check(func(v strictyaml.Value) bool {
			return parseInto(v, &c.PII, schemas.ParsePII, "write drop, redact, hmac or truncate(n)")
		})),
		strictyaml.Optional("label", check(func(v strictyaml.Value) bool {
			label, ok := v.Scalar() // a heading may be empty
			if !ok {
				v.Fail("write the column's heading, in quotes", "text is expected, not %s", v.Kind())
			}
			c.Label = label
			return ok
		})),
	}, readingFields(&c.Reading, check), listFields(&c, check))
	values := v.Section(fields...)
	for _, key := range []string{"name", "from", "type"} {
		if _, given := values[key]; !given {
			r.bad[strictyaml.JoinKeys(v.Path(), key)] = true // Section has reported it as missing
		}
	}
	r.schema.Columns = append(r.schema.Columns, c)
	r.columns = append(r.columns, values)
	r.entries = append(r.entries, v)
}

// checked wraps the reader of a value and remembers the values that it refuses.
type checked func(read func(strictyaml.Value) bool) func(strictyaml.Value)

// readingFields are the keys of a column that say how its values are read.
func readingFields(r *schemas.Reading, check checked) []strictyaml.Field {
	return []strictyaml.Field{
		strictyaml.Optional("format", check(func(v strictyaml.Value) bool { return readTexts(v, &r.Formats, true) })),
		strictyaml.Optional("true_values", check(func(v strictyaml.Value) bool { return readTexts(v, &r.True, false) })),
		strictyaml.Optional("false_values", check(func(v strictyaml.Value) bool { return readTexts(v, &r.False, false) })),
		strictyaml.Optional("decimal_separator", check(func(v strictyaml.Value) bool { return readText(v, &r.Decimal) })),
		strictyaml.Optional("group_separator", check(func(v strictyaml.Value) bool { return readText(v, &r.Group) })),
	}
}

// listFields are the keys of a column that say how its lists are shown.
func listFields(c *schemas.Column, check checked) []strictyaml.Field {
	return []strictyaml.Field{
		strictyaml.Optional("list_as", check(func(v strictyaml.Value) bool {
			return readWord(v, &c.ListAs, schemas.ListJoined, schemas.ListJSON, schemas.ListColumns)
		})),
		strictyaml.Optional("choices", check(func(v strictyaml.Value) bool { return readTexts(v, &c.Choices, false) })),
		strictyaml.Optional("explode", check(func(v strictyaml.Value) bool {
			explode, ok := v.Boolean()
			c.Explode = explode
			return ok
		})),
	}
}

// readTexts reads a list of texts, or one text where single allows it. In such a
// list true and false are words like any other.
func readTexts(v strictyaml.Value, target *[]string, single bool) bool {
	if _, scalar := v.Scalar(); scalar && single {
		text, ok := v.Text()
		*target = []string{text}
		return ok
	}
	entries := v.List()
	for _, e := range entries {
		text, ok := e.Word()
		if !ok {
			return false
		}
		*target = append(*target, text)
	}
	return len(entries) > 0
}
