package pipelines

import (
	"errors"
	"math"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/formetl/formetl/schemas"
)

// LoadSchema reads a schema file strictly. Everything that is wrong is
// reported at once, as a *DefinitionError. Defaults are filled in; a file
// without a name is called after its file name.
func LoadSchema(file string) (*schemas.Schema, error) {
	doc, root, err := readDocument(file)
	if err != nil {
		return nil, err
	}
	return decodeSchema(doc, root, hmacKeys{})
}

// LoadSchemaWithKey is LoadSchema and gets the key of pii: hmac where a column
// needs it. lookup reads the environment.
func LoadSchemaWithKey(file string, lookup func(name string) (string, bool)) (*schemas.Schema, error) {
	doc, root, err := readDocument(file)
	if err != nil {
		return nil, err
	}
	return decodeSchema(doc, root, hmacKeys{wanted: true, dir: filepath.Dir(file), lookup: lookup})
}

// parseSchema is LoadSchema for bytes that were read from file.
func parseSchema(file string, data []byte) (*schemas.Schema, error) {
	doc, root, err := parseDocument(file, data)
	if err != nil {
		return nil, err
	}
	return decodeSchema(doc, root, hmacKeys{})
}

func decodeSchema(doc *document, root value, keys hmacKeys) (*schemas.Schema, error) {
	base := filepath.Base(doc.file)
	r := newSchemaReader(strings.TrimSuffix(base, filepath.Ext(base)))
	root.section(append([]field{{"version", true, readVersion}}, r.fields()...)...)
	r.validate(root)
	doc.redact(r.settleHMACKey(keys))
	if err := doc.err(); err != nil {
		return nil, err
	}
	return r.schema, nil
}

// schemaReader turns a document, or a part of a definition, into a schema and
// keeps the place of every key, so that what schemas.Validate finds gets one.
type schemaReader struct {
	schema  *schemas.Schema
	own     map[string]value   // the schema's own keys
	columns []map[string]value // the keys of each column
	entries []value            // the columns
	bad     map[string]bool    // paths that a problem has been reported for
}

func newSchemaReader(name string) *schemaReader {
	return &schemaReader{
		schema: &schemas.Schema{Name: name, Unknown: schemas.UnknownAdd, MaxRejects: schemas.DefaultMaxRejects, Empty: schemas.EmptyKeep},
		own:    map[string]value{}, bad: map[string]bool{},
	}
}

func (r *schemaReader) fields() []field {
	keep := func(read func(value) bool) func(value) {
		return func(v value) {
			r.own[lastKey(v.path)] = v
			if !read(v) {
				r.bad[v.path] = true
			}
		}
	}
	s := r.schema
	return []field{
		{"name", false, keep(func(v value) bool { return readText(v, &s.Name) })},
		{"unknown", false, keep(func(v value) bool {
			return readWord(v, &s.Unknown, schemas.UnknownAdd, schemas.UnknownIgnore, schemas.UnknownFail)
		})},
		{"max_rejects", false, keep(func(v value) bool {
			n, ok := v.integer(0, math.MaxInt32)
			if ok {
				s.MaxRejects = n
			}
			return ok
		})},
		{"max_columns", false, keep(func(v value) bool {
			n, ok := v.integer(1, math.MaxInt32)
			if ok {
				s.MaxColumns = n
			}
			return ok
		})},
		{"empty", false, keep(func(v value) bool {
			return readWord(v, &s.Empty, schemas.EmptyKeep, schemas.EmptyAsNull)
		})},
		{"hmac_key", false, keep(r.readHMACKey)},
		{"columns", false, keep(r.readColumns)},
	}
}

func readText(v value, target *string) bool {
	text, ok := v.text()
	if ok {
		*target = text
	}
	return ok
}

// readWord reads one of a few words into a string type of its own.
func readWord[T ~string](v value, target *T, words ...T) bool {
	plain := make([]string, len(words))
	for i, w := range words {
		plain[i] = string(w)
	}
	word, ok := v.oneOf(plain...)
	if ok {
		*target = T(word)
	}
	return ok
}

func (r *schemaReader) readColumns(v value) bool {
	entries := v.list()
	for _, e := range entries {
		r.readColumn(e)
	}
	return len(entries) > 0
}

func parseInto[T any](v value, target *T, parse func(string) (T, error), remedy string) bool {
	text, ok := v.text()
	if !ok {
		return false
	}
	parsed, err := parse(text)
	if err != nil {
		v.failWith(err, remedy)
		return false
	}
	*target = parsed
	return true
}

// validate reports what schemas.Validate finds beyond what has been reported,
// each at its key.
func (r *schemaReader) validate(root value) {
	var invalid *schemas.InvalidError
	err := r.schema.Validate()
	if err == nil {
		return
	}
	if !errors.As(err, &invalid) {
		root.failWith(err, "mend the schema")
		return
	}
	for _, p := range invalid.Problems {
		place, path := root, join(root.path, p.Key)
		keys := r.own
		if p.Column >= 0 && p.Column < len(r.columns) {
			place, keys = r.entries[p.Column], r.columns[p.Column]
			path = join(place.path, p.Key)
		}
		if r.bad[path] {
			continue
		}
		if v, given := keys[p.Key]; given {
			place = v
		}
		place.failWith(errors.New(p.Text), "change the value, or leave the column out")
	}
}

// readSchema reads a definition's schema: the path of a schema file, or the
// same keys inline.
func (r *definitionReader) readSchema(v value) {
	r.schema = v
	if _, inline := v.node.(ast.MapNode); inline {
		s := newSchemaReader(r.def.Name)
		v.section(s.fields()...)
		s.validate(v)
		r.hmacKey = s.settleHMACKey(r.hmacKeys())
		r.def.Schema = s.schema
		return
	}
	file, ok := v.text()
	if !ok {
		return
	}
	load := LoadSchema
	if !r.o.WithoutSecrets {
		load = func(file string) (*schemas.Schema, error) { return LoadSchemaWithKey(file, r.o.Lookup) }
	}
	schema, err := load(r.local(file))
	var wrong *DefinitionError
	switch {
	case err == nil:
		r.def.Schema = schema
	case errors.As(err, &wrong) && wrong.Err == nil:
		v.fail("mend the schema file", "the schema file has problems")
		for _, p := range wrong.Problems {
			p.File = wrong.File
			v.doc.problems = append(v.doc.problems, p)
		}
	default:
		v.fail("write a path relative to the definition's folder", "the schema file %s cannot be read: %v", show(r.local(file)), systemReason(errors.Unwrap(err)))
	}
}

// readColumns reads columns that stand in the definition itself. They take
// the defaults of a schema file; its other keys need `schema:` with the
// columns in it.
func (r *definitionReader) readColumns(v value) {
	if r.schema.given() {
		v.fail("put the columns under schema:, or keep one of both", "the definition has schema: (line %s) and columns:", lineOf(r.schema))
		return
	}
	s := newSchemaReader(r.def.Name)
	s.own["columns"] = v
	s.readColumns(v)
	s.validate(value{doc: v.doc, node: v.node, key: v.key})
	r.hmacKey = s.settleHMACKey(r.hmacKeys())
	r.def.Schema = s.schema
}
