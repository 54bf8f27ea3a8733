package definition

import (
	"errors"
	"math"
	"path/filepath"
	"strings"

	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// LoadSchema reads a schema file strictly. Everything that is wrong is reported at
// once, as an *Error. Defaults are filled in. A schema without a name is called
// after its file.
func LoadSchema(file string) (*schemas.Schema, error) {
	doc, root, err := strictyaml.Read(file)
	if err != nil {
		return nil, err
	}
	return decodeSchema(doc, root, hmacKeys{})
}

// LoadSchemaWithKey does what LoadSchema does, and reads the key of pii: hmac if a
// column needs it. lookup reads the environment.
func LoadSchemaWithKey(file string, lookup func(name string) (string, bool)) (*schemas.Schema, error) {
	doc, root, err := strictyaml.Read(file)
	if err != nil {
		return nil, err
	}
	return decodeSchema(doc, root, hmacKeys{wanted: true, dir: filepath.Dir(file), lookup: lookup})
}

func decodeSchema(doc *strictyaml.Document, root strictyaml.Value, keys hmacKeys) (*schemas.Schema, error) {
	base := filepath.Base(doc.File())
	r := newSchemaReader(strings.TrimSuffix(base, filepath.Ext(base)))
	root.Section(append([]strictyaml.Field{strictyaml.Required("version", readVersion)}, r.fields()...)...)
	r.validate(root)
	doc.Redact(r.settleHMACKey(keys).Redact)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return r.schema, nil
}

// schemaReader turns a document, or a part of a definition, into a schema. It keeps
// the place of every key, so that problems that schemas.Validate finds have a place.
type schemaReader struct {
	schema  *schemas.Schema
	own     map[string]strictyaml.Value   // the schema's own keys
	columns []map[string]strictyaml.Value // the keys of each column
	entries []strictyaml.Value            // the columns
	bad     map[string]bool               // paths that a problem has been reported for
}

func newSchemaReader(name string) *schemaReader {
	return &schemaReader{
		schema: &schemas.Schema{Name: name, Unknown: schemas.UnknownAdd, MaxRejects: schemas.DefaultMaxRejects, Empty: schemas.EmptyKeep},
		own:    map[string]strictyaml.Value{}, bad: map[string]bool{},
	}
}

func (r *schemaReader) fields() []strictyaml.Field {
	keep := func(read func(strictyaml.Value) bool) func(strictyaml.Value) {
		return func(v strictyaml.Value) {
			r.own[v.Key()] = v
			if !read(v) {
				r.bad[v.Path()] = true
			}
		}
	}
	s := r.schema
	return []strictyaml.Field{
		strictyaml.Optional("name", keep(func(v strictyaml.Value) bool { return readText(v, &s.Name) })),
		strictyaml.Optional("unknown", keep(func(v strictyaml.Value) bool {
			return readWord(v, &s.Unknown, schemas.UnknownAdd, schemas.UnknownIgnore, schemas.UnknownFail)
		})),
		strictyaml.Optional("max_rejects", keep(func(v strictyaml.Value) bool {
			n, ok := v.Integer(0, math.MaxInt32)
			if ok {
				s.MaxRejects = n
			}
			return ok
		})),
		strictyaml.Optional("max_columns", keep(func(v strictyaml.Value) bool {
			n, ok := v.Integer(1, math.MaxInt32)
			if ok {
				s.MaxColumns = n
			}
			return ok
		})),
		strictyaml.Optional("empty", keep(func(v strictyaml.Value) bool {
			return readWord(v, &s.Empty, schemas.EmptyKeep, schemas.EmptyAsNull)
		})),
		strictyaml.Optional("hmac_key", keep(r.readHMACKey)),
		strictyaml.Optional("columns", keep(r.readColumns)),
	}
}

func readText(v strictyaml.Value, target *string) bool {
	text, ok := v.Text()
	if ok {
		*target = text
	}
	return ok
}

// readWord reads one of a few words into a string type.
func readWord[T ~string](v strictyaml.Value, target *T, words ...T) bool {
	plain := make([]string, len(words))
	for i, w := range words {
		plain[i] = string(w)
	}
	word, ok := v.OneOf(plain...)
	if ok {
		*target = T(word)
	}
	return ok
}

func (r *schemaReader) readColumns(v strictyaml.Value) bool {
	entries := v.List()
	for _, e := range entries {
		r.readColumn(e)
	}
	return len(entries) > 0
}

func parseInto[T any](v strictyaml.Value, target *T, parse func(string) (T, error), remedy string) bool {
	text, ok := v.Text()
	if !ok {
		return false
	}
	parsed, err := parse(text)
	if err != nil {
		v.FailWith(err, remedy)
		return false
	}
	*target = parsed
	return true
}

// validate reports the problems that schemas.Validate finds, each at its key.
// Problems at keys that have been reported already are left out.
func (r *schemaReader) validate(root strictyaml.Value) {
	var invalid *schemas.InvalidError
	err := r.schema.Validate()
	if err == nil {
		return
	}
	if !errors.As(err, &invalid) {
		root.FailWith(err, "mend the schema")
		return
	}
	for _, p := range invalid.Problems {
		place, path := root, strictyaml.JoinKeys(root.Path(), p.Key)
		keys := r.own
		if p.Column >= 0 && p.Column < len(r.columns) {
			place, keys = r.entries[p.Column], r.columns[p.Column]
			path = strictyaml.JoinKeys(place.Path(), p.Key)
		}
		if r.bad[path] {
			continue
		}
		if v, given := keys[p.Key]; given {
			place = v
		}
		place.FailWith(errors.New(p.Text), "change the value, or leave the column out")
	}
}

// readSchema reads a definition's schema: the path of a schema file, or the
// same keys inline.
func (r *reader) readSchema(v strictyaml.Value) {
	r.schema = v
	if v.IsGroup() {
		s := newSchemaReader(r.def.Name)
		v.Section(s.fields()...)
		s.validate(v)
		r.hmacKey = s.settleHMACKey(r.hmacKeys())
		r.def.Schema = s.schema
		return
	}
	file, ok := v.Text()
	if !ok {
		return
	}
	load := LoadSchema
	if !r.o.WithoutSecrets {
		load = func(file string) (*schemas.Schema, error) { return LoadSchemaWithKey(file, r.o.Lookup) }
	}
	schema, err := load(r.local(file))
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
		v.Fail("write a path relative to the definition's folder", "the schema file %s cannot be read: %v", strictyaml.Quote(r.local(file)), errors.Unwrap(err))
	}
}

// readColumns reads columns that stand in the definition itself (columns:). They
// make a schema with the defaults of a schema file.
func (r *reader) readColumns(v strictyaml.Value) {
	if r.schema.Given() {
		v.Fail("put the columns under schema:, or keep one of both", "the definition has schema: (line %d) and columns:", r.schema.Line())
		return
	}
	s := newSchemaReader(r.def.Name)
	s.own["columns"] = v
	s.readColumns(v)
	s.validate(v.Renamed(""))
	r.hmacKey = s.settleHMACKey(r.hmacKeys())
	r.def.Schema = s.schema
}
