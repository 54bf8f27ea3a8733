package definition

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/schemas"
)

// LoadSchema reads a schema file strictly: unknown keys are problems. Everything that is wrong is
// reported at once, as an *Error. Defaults are filled in. A schema without a name gets its file's
// name, without the extension. The key of pii: hmac is read if a column needs it; if secrets is
// nil, no key is read.
func LoadSchema(file string, secrets *Secrets) (*schemas.Schema, error) {
	doc, root, err := readDocument(file)
	if err != nil {
		return nil, err
	}
	if isDefinition(root) {
		return nil, doc.WrongFile("this is a definition, not a schema file", "give a schema file; `formetl schema infer "+ShellWord(doc.file)+" --form FORM -o FORM.schema.yaml` writes one")
	}
	return decodeSchema(doc, root, secrets)
}

func decodeSchema(doc *document, root value, secrets *Secrets) (*schemas.Schema, error) {
	base := filepath.Base(doc.file)
	schema := readSchema(root, strings.TrimSuffix(base, filepath.Ext(base)), filepath.Dir(doc.file), secrets, required("version", readVersion))
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return schema, nil
}

// schemaReader turns a schema file, or a part of a definition, into a schema. It remembers where
// every key stands, so that problems that Schema.Validate finds are reported with their lines.
type schemaReader struct {
	schema  *schemas.Schema
	own     section   // the keys of the schema itself, such as unknown
	columns []section // the keys of each column
}

// section is a group of keys of a YAML file, with the group's values by key.
type section struct {
	value
	keys map[string]value
}

// readSchema reads a schema: a group of keys, whose first are fields, or a list of columns alone.
// Then it checks the schema, and reads the key of pii: hmac. name is the name of a schema that
// gives none. Paths of key files are relative to dir.
func readSchema(v value, name, dir string, secrets *Secrets, fields ...field) *schemas.Schema {
	s := &schemas.Schema{Name: name, Unknown: schemas.UnknownAdd, MaxRejects: schemas.DefaultMaxRejects, Empty: schemas.EmptyKeep}
	r := &schemaReader{schema: s, own: section{v, map[string]value{"columns": v}}}
	columns := func(v value) {
		for _, e := range v.List() {
			r.readColumn(e)
		}
	}
	if v.Key() == "columns" {
		columns(v)
	} else {
		r.own.keys = v.Section(append(fields,
			optional("name", intoText(&s.Name)),
			optional("unknown", intoOneOf(&s.Unknown, schemas.UnknownAdd, schemas.UnknownIgnore, schemas.UnknownFail)),
			optional("max_rejects", intoInteger(&s.MaxRejects, 0, math.MaxInt32)),
			optional("max_columns", intoInteger(&s.MaxColumns, 1, math.MaxInt32)),
			optional("empty", intoOneOf(&s.Empty, schemas.EmptyKeep, schemas.EmptyAsNull)),
			optional("hmac_key", nil),
			optional("columns", columns),
		)...)
	}
	if invalid, ok := errors.AsType[*schemas.InvalidError](s.Validate()); ok {
		r.report(invalid.Problems)
	}
	for i, c := range s.Columns { // what was typed is as personal as the choice
		if at := s.Find(c.From.Item()); c.From.Kind == schemas.FromOther && at >= 0 && c.PII.Kind == schemas.PIINone {
			s.Columns[i].PII = s.Columns[at].PII
		}
	}
	r.readKey(dir, secrets)
	s.AddTyped(schemas.ByID, func(c schemas.Column) bool { return c.Other == schemas.OtherColumn })
	return s
}

// report reports the problems that Schema.Validate found, each at the key that it is about. A
// problem at a key that has a reported problem already is left out.
func (r *schemaReader) report(problems []schemas.Problem) {
	at := func(p schemas.Problem) section {
		if p.Column < 0 {
			return r.own
		}
		return r.columns[p.Column]
	}
	problems = slices.DeleteFunc(problems, func(p schemas.Problem) bool { return at(p).Refused(p.Key) })
	for _, p := range problems {
		place, given := at(p).keys[p.Key]
		if !given {
			place = at(p).value
		}
		place.FailWith(errors.New(p.Text), "change this value, or leave this key or the column out")
	}
}

// readSchema reads what a definition has under schema: the path of a schema file, which may have
// {form}, or the keys of a schema file as a group.
func (r *reader) readSchema(v value) {
	r.schema = v
	if v.IsGroup() {
		r.def.Schema = readSchema(v, r.def.Name, r.dir, r.secrets)
		return
	}
	file, ok := readSchemaPath(v)
	if !ok {
		return
	}
	if strings.Contains(file, "{form}") {
		r.schemaFile = file // Definition.For reads the file of each form
		return
	}
	schema, err := LoadSchema(r.local(file), r.secrets)
	var wrong *Error
	switch {
	case err == nil:
		r.def.Schema = schema
	case errors.As(err, &wrong) && wrong.Err == nil:
		v.Fail("fix the problems that follow", "the schema file has problems")
		for _, p := range wrong.Problems {
			p.File = wrong.File
			v.doc.problems = append(v.doc.problems, p)
		}
	default:
		v.Fail("check the path, which is relative to the definition's folder; if there is no such file yet, leave this line out and run `formetl schema infer "+ShellWord(v.doc.file)+" --form FORM -o FILE`, which writes one", "the schema file %s cannot be read: %v", Quote(file), errors.Unwrap(err))
	}
}

// readColumns reads v, the columns that stand in the definition itself under columns:. They
// make a schema with the defaults of a schema file. A definition that also has schema: is refused.
func (r *reader) readColumns(v, schema value) {
	if schema.Given() {
		v.Fail("keep one of them", "the definition has both schema: (line %d) and columns:", schema.Line())
		return
	}
	r.schema, r.def.Schema = v, readSchema(v, r.def.Name, r.dir, r.secrets)
}

// readColumn reads one column of a schema.
func (r *schemaReader) readColumn(v value) {
	c := schemas.Column{OnError: schemas.OnErrorReject}
	nullable := true
	keys := v.Section(
		required("name", intoText(&c.Name)),
		required("from", intoParsed(&c.From, parseSource, "write "+schemas.KnownSources)),
		required("type", intoParsed(&c.Type, schemas.ParseType, "write a type such as string, int64, decimal(12,2) or list<string>")),
		optional("nullable", intoBoolean(&nullable)),
		optional("on_error", intoOneOf(&c.OnError, schemas.OnErrorReject, schemas.OnErrorFail, schemas.OnErrorSetNull)),
		optional("pii", intoParsed(&c.PII, schemas.ParsePII, "write drop, redact, hmac (a hash with a key) or truncate(n), n characters")),
		optional("label", func(v value) {
			label, ok := v.Scalar() // not v.Text, because a label may be empty
			if !ok {
				v.Fail("write the column's heading, in quotes", "text is expected, not %s", v.Kind())
			}
			c.Label = label
		}),
		optional("format", func(v value) {
			if _, single := v.Scalar(); single {
				format, _ := v.Text()
				c.Reading.Formats = []string{format}
				return
			}
			readTexts(v, &c.Reading.Formats)
		}),
		optional("true_values", func(v value) { readTexts(v, &c.Reading.True) }),
		optional("false_values", func(v value) { readTexts(v, &c.Reading.False) }),
		optional("decimal_separator", intoText(&c.Reading.Decimal)),
		optional("group_separator", intoText(&c.Reading.Group)),
		optional("list_as", intoOneOf(&c.ListAs, schemas.ListJoined, schemas.ListJSON, schemas.ListColumns)),
		optional("choices", func(v value) { readTexts(v, &c.Choices) }),
		optional("other", intoOneOf(&c.Other, schemas.OtherColumn, schemas.OtherInline)),
		optional("explode", intoBoolean(&c.Explode)),
	)
	c.Required = !nullable
	r.schema.Columns = append(r.schema.Columns, c)
	r.columns = append(r.columns, section{v, keys})
}

// readTexts reads a list of texts into target; true and false are texts like any other there.
func readTexts(v value, target *[]string) {
	for _, e := range v.List() {
		text, ok := e.Word()
		if !ok {
			return
		}
		*target = append(*target, text)
	}
}

// readKey reads the key of pii: hmac that hmac_key refers to, if a column needs it. The path of
// a key file is relative to dir. If secrets is nil, no key is read. Problems with the key are
// reported at hmac_key, or at the first column that needs the key if hmac_key is left out.
func (r *schemaReader) readKey(dir string, secrets *Secrets) {
	v := r.own.keys["hmac_key"]
	ref, ok := hmacKey.reference(v)
	if ok && v.Given() {
		r.schema.HMACReference, _ = v.Scalar()
	}
	first := slices.IndexFunc(r.schema.Columns, func(c schemas.Column) bool { return c.PII.Kind == schemas.PIIHMAC })
	if secrets == nil || first < 0 || !ok {
		return
	}
	text, where, err := ref.read(dir, *secrets)
	r.own.doc.Redact(transport.NewSecret(text).Redact)
	switch {
	case err != nil && text != "":
		err = fmt.Errorf("%w; `openssl rand -hex 32` prints a new key", err)
	case text != "":
		if r.schema.HMACKey, err = schemas.NewHMACKey([]byte(text)); err != nil {
			err = fmt.Errorf("%s holds %w", where, err)
		}
	}
	if err != nil {
		hmacKey.fail(v, r.columns[first].keys["pii"], ref, err)
	}
}

// parseSource reads the source of a column that a schema may have.
func parseSource(text string) (schemas.Source, error) {
	from, err := schemas.ParseSource(text)
	if err == nil && from.Kind == schemas.FromFile {
		return from, errors.New("only the list of uploaded files has this source")
	}
	return from, err
}
