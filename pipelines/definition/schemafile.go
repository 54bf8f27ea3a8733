package definition

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// LoadSchema reads a schema file strictly. Everything that is wrong is reported at
// once, as an *Error. Defaults are filled in. A schema without a name is called
// after its file. The key of pii: hmac is read if a column needs it; where secrets is
// nil, no key is read.
func LoadSchema(file string, secrets *Secrets) (*schemas.Schema, error) {
	doc, root, err := strictyaml.Read(file)
	if err != nil {
		return nil, err
	}
	if isDefinition(root) {
		return nil, doc.Wrong("this is a definition, not a schema file", "give the file that it names under schema:, or write one by `formetl schema infer`")
	}
	return decodeSchema(doc, root, secrets)
}

func decodeSchema(doc *strictyaml.Document, root strictyaml.Value, secrets *Secrets) (*schemas.Schema, error) {
	base := filepath.Base(doc.File())
	r := newSchemaReader(strings.TrimSuffix(base, filepath.Ext(base)))
	r.readOwn(root, strictyaml.Required("version", readVersion))
	r.settle(filepath.Dir(doc.File()), secrets)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return r.schema, nil
}

// schemaReader turns a document, or a part of a definition, into a schema. It keeps
// the place of every key, so that problems that schemas.Validate finds have a place.
type schemaReader struct {
	schema  *schemas.Schema
	own     section   // the schema's own keys
	columns []section // the keys of each column
}

// section is a group of keys with its values by key.
type section struct {
	strictyaml.Value
	keys map[string]strictyaml.Value
}

func newSchemaReader(name string) *schemaReader {
	return &schemaReader{
		schema: &schemas.Schema{Name: name, Unknown: schemas.UnknownAdd, MaxRejects: schemas.DefaultMaxRejects, Empty: schemas.EmptyKeep},
	}
}

// readOwn reads a schema's own keys after the given ones.
func (r *schemaReader) readOwn(v strictyaml.Value, fields ...strictyaml.Field) {
	s := r.schema
	r.own = section{v, v.Section(append(fields,
		strictyaml.Optional("name", strictyaml.Text(&s.Name)),
		strictyaml.Optional("unknown", strictyaml.OneOf(&s.Unknown, schemas.UnknownAdd, schemas.UnknownIgnore, schemas.UnknownFail)),
		strictyaml.Optional("max_rejects", strictyaml.Integer(&s.MaxRejects, 0, math.MaxInt32)),
		strictyaml.Optional("max_columns", strictyaml.Integer(&s.MaxColumns, 1, math.MaxInt32)),
		strictyaml.Optional("empty", strictyaml.OneOf(&s.Empty, schemas.EmptyKeep, schemas.EmptyAsNull)),
		strictyaml.Optional("hmac_key", r.readHMACKey),
		strictyaml.Optional("columns", r.readColumns),
	)...)}
}

func (r *schemaReader) readColumns(v strictyaml.Value) {
	for _, e := range v.List() {
		r.readColumn(e)
	}
}

// settle checks the schema when all of its keys are read, and reads the key of pii:
// hmac.
func (r *schemaReader) settle(dir string, secrets *Secrets) {
	var invalid *schemas.InvalidError
	if errors.As(r.schema.Validate(), &invalid) {
		r.report(invalid.Problems)
	}
	r.readKey(dir, secrets)
}

// report reports the problems that schemas.Validate found, each at its key. Problems
// at keys that have been reported already are left out.
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
			place = at(p).Value
		}
		place.FailWith(errors.New(p.Text), "change the value, or leave the column out")
	}
}

// readSchema reads a definition's schema: the path of a schema file, or the
// same keys inline.
func (r *reader) readSchema(v strictyaml.Value) {
	if v.IsGroup() {
		s := newSchemaReader(r.def.Name)
		s.readOwn(v)
		s.settle(r.dir, r.secrets)
		r.def.Schema = s.schema
		return
	}
	file, ok := v.Text()
	if !ok {
		return
	}
	if err := CheckLocal(file); err != nil {
		v.FailWith(err, "")
		return
	}
	schema, err := LoadSchema(r.local(file), r.secrets)
	var wrong *Error
	switch {
	case err == nil:
		r.def.Schema = schema
	case errors.As(err, &wrong) && wrong.Err == nil:
		v.Fail("mend the schema file", "the schema file has problems")
		for _, p := range wrong.Problems {
			p.File = wrong.File
			v.Report(p)
		}
	default:
		v.Fail("write a path relative to the definition's folder", "the schema file %s cannot be read: %v", strictyaml.Quote(file), errors.Unwrap(err))
	}
}

// readColumns reads columns that stand in the definition itself (columns:). They
// make a schema with the defaults of a schema file.
func (r *reader) readColumns(v, schema strictyaml.Value) {
	if schema.Given() {
		v.Fail("put the columns under schema:, or keep one of both", "the definition has schema: (line %d) and columns:", schema.Line())
		return
	}
	s := newSchemaReader(r.def.Name)
	s.own = section{v.Renamed(""), map[string]strictyaml.Value{"columns": v}}
	s.readColumns(v)
	s.settle(r.dir, r.secrets)
	r.def.Schema = s.schema
}
