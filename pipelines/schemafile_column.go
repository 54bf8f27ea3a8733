package pipelines

import (
	"slices"

	"github.com/formetl/formetl/schemas"
)

// readColumn reads one column of a schema.
func (r *schemaReader) readColumn(v value) {
	c := schemas.Column{OnError: schemas.OnErrorReject}
	check := func(name string, required bool, read func(value) bool) field {
		return field{name, required, func(v value) {
			if !read(v) {
				r.bad[v.path] = true
			}
		}}
	}
	fields := slices.Concat([]field{
		check("name", true, func(v value) bool { return readText(v, &c.Name) }),
		check("from", true, func(v value) bool {
			return parseInto(v, &c.From, schemas.ParseSource, "write result_id, meta:ID or item:ID")
		}),
		check("type", true, func(v value) bool {
			return parseInto(v, &c.Type, schemas.ParseType, "write a type such as string, int64, decimal(12,2) or list<string>")
		}),
		check("nullable", false, func(v value) bool {
			nullable, ok := v.boolean()
			c.Required = ok && !nullable
			return ok
		}),
		check("on_error", false, func(v value) bool {
			return readWord(v, &c.OnError, schemas.OnErrorReject, schemas.OnErrorFail, schemas.OnErrorSetNull)
		}),
		check("pii", false, func(v value) bool {
			return parseInto(v, &c.PII, schemas.ParsePII, "write drop, redact, hmac or truncate(n)")
		}),
		check("label", false, func(v value) bool {
			label, ok := v.scalar() // a heading may be empty
			if !ok {
				v.fail("write the column's heading, in quotes", "text is expected, not %s", v.kind())
			}
			c.Label = label
			return ok
		}),
	}, readingFields(&c.Reading, check), listFields(&c, check))
	values := v.section(fields...)
	for _, required := range []string{"name", "from", "type"} {
		if _, given := values[required]; !given {
			r.bad[join(v.path, required)] = true // reported as missing
		}
	}
	r.schema.Columns = append(r.schema.Columns, c)
	r.columns = append(r.columns, values)
	r.entries = append(r.entries, v)
}

// checkedField makes a field whose reading is checked.
type checkedField func(name string, required bool, read func(value) bool) field

// readingFields are the keys that say how values are read.
func readingFields(r *schemas.Reading, check checkedField) []field {
	return []field{
		check("format", false, func(v value) bool { return readTexts(v, &r.Formats, true) }),
		check("true_values", false, func(v value) bool { return readTexts(v, &r.True, false) }),
		check("false_values", false, func(v value) bool { return readTexts(v, &r.False, false) }),
		check("decimal_separator", false, func(v value) bool { return readText(v, &r.Decimal) }),
		check("group_separator", false, func(v value) bool { return readText(v, &r.Group) }),
	}
}

// listFields are the keys that say how lists are shown.
func listFields(c *schemas.Column, check checkedField) []field {
	return []field{
		check("list_as", false, func(v value) bool {
			return readWord(v, &c.ListAs, schemas.ListJoined, schemas.ListJSON, schemas.ListColumns)
		}),
		check("choices", false, func(v value) bool { return readTexts(v, &c.Choices, false) }),
		check("explode", false, func(v value) bool {
			explode, ok := v.boolean()
			c.Explode = explode
			return ok
		}),
	}
}

// readTexts reads a list of texts, or one text where single allows it. Words
// such as yes and true count as written: in a list of words they are words.
func readTexts(v value, target *[]string, single bool) bool {
	if _, scalar := v.scalar(); scalar && single {
		text, ok := v.text()
		*target = []string{text}
		return ok
	}
	entries := v.list()
	for _, e := range entries {
		text, ok := e.word()
		if !ok {
			return false
		}
		*target = append(*target, text)
	}
	return len(entries) > 0
}
