package definition

import (
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// readColumn reads one column of a schema.
func (r *schemaReader) readColumn(v strictyaml.Value) {
	c := schemas.Column{OnError: schemas.OnErrorReject}
	nullable := true
	keys := v.Section(
		strictyaml.Required("name", strictyaml.Text(&c.Name)),
		strictyaml.Required("from", strictyaml.Parsed(&c.From, schemas.ParseSource, "write result_id, meta:ID or item:ID")),
		strictyaml.Required("type", strictyaml.Parsed(&c.Type, schemas.ParseType, "write a type such as string, int64, decimal(12,2) or list<string>")),
		strictyaml.Optional("nullable", strictyaml.Boolean(&nullable)),
		strictyaml.Optional("on_error", strictyaml.OneOf(&c.OnError, schemas.OnErrorReject, schemas.OnErrorFail, schemas.OnErrorSetNull)),
		strictyaml.Optional("pii", strictyaml.Parsed(&c.PII, schemas.ParsePII, "write drop, redact, hmac or truncate(n)")),
		strictyaml.Optional("label", func(v strictyaml.Value) {
			label, ok := v.Scalar() // a heading may be empty
			if !ok {
				v.Fail("write the column's heading, in quotes", "text is expected, not %s", v.Kind())
			}
			c.Label = label
		}),
		strictyaml.Optional("format", func(v strictyaml.Value) {
			if _, single := v.Scalar(); single {
				format, _ := v.Text()
				c.Reading.Formats = []string{format}
				return
			}
			readTexts(v, &c.Reading.Formats)
		}),
		strictyaml.Optional("true_values", func(v strictyaml.Value) { readTexts(v, &c.Reading.True) }),
		strictyaml.Optional("false_values", func(v strictyaml.Value) { readTexts(v, &c.Reading.False) }),
		strictyaml.Optional("decimal_separator", strictyaml.Text(&c.Reading.Decimal)),
		strictyaml.Optional("group_separator", strictyaml.Text(&c.Reading.Group)),
		strictyaml.Optional("list_as", strictyaml.OneOf(&c.ListAs, schemas.ListJoined, schemas.ListJSON, schemas.ListColumns)),
		strictyaml.Optional("choices", func(v strictyaml.Value) { readTexts(v, &c.Choices) }),
		strictyaml.Optional("explode", strictyaml.Boolean(&c.Explode)),
	)
	c.Required = !nullable
	r.schema.Columns = append(r.schema.Columns, c)
	r.columns = append(r.columns, section{v, keys})
}

// readTexts reads a list of texts, in which true and false are words like any other.
func readTexts(v strictyaml.Value, target *[]string) {
	for _, e := range v.List() {
		text, ok := e.Word()
		if !ok {
			return
		}
		*target = append(*target, text)
	}
}
