package definition

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// Defaults of keys that a definition leaves out.
const (
	DefaultMaxRequests = 100_000
	DefaultSettle      = time.Minute
	DefaultLookback    = 3 * 24 * time.Hour
	DefaultState       = ".formetl" // folder beside the definition
)

// The greatest values that the keys of a definition may have.
const (
	maxConcurrency = 256
	maxRetries     = 100
	maxBudget      = 1_000_000_000
	maxTimeout     = time.Hour
	maxPatience    = 24 * time.Hour
	maxSpan        = 10 * 366 * 24 * time.Hour
)

// LoadOptions says what a definition is checked against, and gives what does not stand in its file.
type LoadOptions struct {
	// Secrets says how references such as ${env:NAME} are resolved.
	Secrets
	// Formats and Schemes are the formats of outputs and the schemes of paths that the program
	// is built with; a scheme is the part of a path before "://", such as "s3".
	Formats []load.Format
	Schemes []string
	// Databases are the kinds of databases that the program is built with.
	Databases []DatabaseKind
	// Key is the API key of --api-key-file. If it is set, it is used instead of the key that
	// the definition refers to.
	Key transport.Secret
	// WithoutSecrets reads no key: of the references to keys only the form is checked.
	WithoutSecrets bool
	// State is the folder or address of budgets and checkpoints if the definition has no
	// state:, "" for .formetl beside the definition.
	State string
	// Variables are the values of --var by name. They replace ${var:NAME} in place of those
	// that the definition has under vars.
	Variables map[string]string
	// Now is the clock that `from: -90d` goes by; nil is time.Now.
	Now func() time.Time
}

// Load reads a definition, checks it without any request and fills in the
// defaults. Everything that is wrong in the file is reported at once, as an *Error.
func Load(file string, o LoadOptions) (*Definition, error) {
	doc, root, err := readDocument(file)
	if err != nil {
		return nil, err
	}
	if !isDefinition(root) && isSchema(root) {
		return nil, doc.WrongFile("this is a schema file, not a definition", "give the definition that names it under schema:")
	}
	return decode(doc, root, o)
}

// Parse reads a definition from data, the bytes of a file, as Load does. The file itself need
// not exist: its name stands in messages, and paths are relative to its folder.
func Parse(file string, data []byte, o LoadOptions) (*Definition, error) {
	doc, root, err := parseDocument(file, data)
	if err != nil {
		return nil, err
	}
	return decode(doc, root, o)
}

func decode(doc *document, root value, o LoadOptions) (*Definition, error) {
	folder, err := filepath.Abs(filepath.Dir(doc.file))
	if err != nil {
		return nil, fmt.Errorf("the folder of %s cannot be found: %w", doc.file, err)
	}
	now := time.Now()
	if o.Now != nil {
		now = o.Now()
	}
	o.Now = func() time.Time { return now } // the same for a form that is asked for later
	secrets := &o.Secrets
	if o.WithoutSecrets {
		secrets = nil
	}
	r := &reader{o: o, secrets: secrets, dir: folder, doc: doc, loaded: map[string]*schemas.Schema{}, def: &Definition{
		File:    doc.file,
		State:   filepath.Join(folder, DefaultState),
		Names:   schemas.ByLabel,
		Source:  Source{Requests: Requests{Concurrency: transport.DefaultConcurrency, Timeout: transport.DefaultTimeout, Retries: transport.DefaultRetries, MaxRequests: DefaultMaxRequests}},
		Extract: Extract{Settle: DefaultSettle, Lookback: DefaultLookback, Changes: ChangesAuto, Verify: true},
	}}
	r.expandReferences(root)
	r.root(root)
	r.keepKeyAway()
	doc.Redact(r.key.Redact)
	if err := doc.Err(); err != nil {
		if wrong, ok := errors.AsType[*Error](err); ok {
			wrong.Name = r.def.Name
		}
		return nil, err
	}
	r.def.Warnings = doc.ready(doc.warnings)
	def := *r.def
	if r.schemaFile != "" || len(r.entries) > 0 {
		def.perForm = &perForm{reader: *r}
	}
	return &def, nil
}

// reader turns a YAML document into a definition.
type reader struct {
	o       LoadOptions
	secrets *Secrets         // how references to keys are resolved; nil if no key is read
	key     transport.Secret // the API key, known also where the definition gets none
	dir     string
	doc     *document
	def     *Definition
	outputs []placedOutput
	files   placedOutput // the folder of uploaded files
	// schema is where the definition has its schema; schemaFile is the path of the file if that
	// has {form}, else "".
	schema     value
	schemaFile string
	entries    []formEntry
	loaded     map[string]*schemas.Schema // the schemas of single forms by their files
	// expansions are the values of the file that had references, except api_key and other
	// secrets.
	expansions []expandedValue
}

// local makes a local path absolute, which may be relative to the definition's folder.
func (r *reader) local(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(r.dir, p)
}

func (r *reader) root(v value) {
	var schema value
	values := v.Section(
		required("version", readVersion),
		required("name", intoParsed(&r.def.Name, pathName("pipeline"), "")),
		optional("vars", nil), // expandReferences has read the variables before
		required("source", r.readSource),
		required("forms", func(v value) { r.def.Forms = readForms(v, r.readEntry) }),
		optional("exclude", func(v value) { r.def.Exclude = readForms(v, func(v value) (value, bool) { return v, true }) }),
		optional("state", r.readState),
		optional("names", intoOneOf(&r.def.Names, schemas.ByID, schemas.ByLabel, schemas.ByHeading)),
		optional("extract", r.readExtract),
		optional("schema", func(v value) { schema = v; r.readSchema(v) }),
		optional("columns", func(v value) { r.readColumns(v, schema) }),
		optional("files", r.readFiles),
		required("load", r.readLoad),
	)
	if r.o.State != "" && !values["state"].Given() {
		r.def.State = r.o.State
	}
	r.checkForms()
	r.checkOutputs(values["names"])
}

// readVersion reads the version of a definition or schema file, which must be 1.
func readVersion(v value) {
	if s, ok := v.Scalar(); !ok || s != "1" {
		v.Fail("write version: 1", "formetl knows version 1 only")
	}
}

// readState reads state:, which says where budgets and checkpoints lie: a path or an address alone,
// or a group of path and s3 (settings of S3).
func (r *reader) readState(v value) {
	read := func(v value) { intoParsed(&r.def.State, r.parseState, "")(v) }
	if !v.IsGroup() {
		read(v)
		return
	}
	v.Section(required("path", read), optional("s3", func(v value) { r.def.StateS3 = readS3(v, r.def.State) }))
}

func (r *reader) parseState(path string) (string, error) {
	if OnS3(path) {
		return r.parseAddress("s3", strings.TrimPrefix(path, "s3://"))
	}
	return r.local(path), CheckLocal(path)
}

// readForms reads a list of form names and globs. nameOf returns the name or glob of an entry.
func readForms(v value, nameOf func(value) (value, bool)) []string {
	var forms []string
	for _, e := range v.List() {
		e, given := nameOf(e)
		if !given {
			continue
		}
		form, ok := e.Text()
		if !ok {
			continue
		}
		glob := IsGlob(form)
		_, badGlob := path.Match(form, "")
		badName := noPathName(form)
		switch {
		case slices.Contains(forms, form):
			e.Fail("keep one of them", "the form %s is listed twice", Quote(form))
		case glob && badGlob != nil:
			e.Fail("close every [ with a ]; if the name has a [ itself, write \\[ in single quotes", "%s is not a valid pattern of forms' names", Quote(form))
		case glob && strings.Contains(form, "/"):
			e.Fail("leave out the slash, and what is before it", "%s matches no form, because a form's name has no slash", Quote(form))
		case !glob && badName != "":
			e.Fail("write the form's name; `formetl forms --base-url URL --account ACCOUNT` lists them", "%s cannot be a form's name: it %s", Quote(form), badName)
		default:
			forms = append(forms, form)
		}
	}
	return forms
}

// IsGlob tells whether an entry of forms or exclude is a glob (path.Match)
// rather than a name.
func IsGlob(form string) bool { return strings.ContainsAny(form, "*?[") }

// ListsForms tells whether the definition has a glob under forms, so that the account's
// forms must be listed (Get Forms) to know which forms are meant.
func (d *Definition) ListsForms() bool { return slices.ContainsFunc(d.Forms, IsGlob) }

// Matches tells whether entry, a name or glob under forms or exclude, means the form.
func Matches(entry, form string) bool {
	if entry == form || entry == "*" { // "*" matches every form that Get Forms lists, whatever its name
		return true
	}
	ok, err := path.Match(entry, form) // patterns were checked when the definition was read
	return err == nil && ok
}

// WantsForm tells whether a run of the definition reads a form of the account: an entry of
// Forms names or matches the form, and no entry of Exclude does.
func (d *Definition) WantsForm(form string) bool {
	named := func(entry string) bool { return Matches(entry, form) }
	return slices.ContainsFunc(d.Forms, named) && !slices.ContainsFunc(d.Exclude, named)
}

// Is tells whether a YAML file is a definition rather than a schema file: it has keys that only
// definitions have. The error is an *Error if the file cannot be read or is no group of keys.
func Is(file string) (bool, error) {
	doc, root, err := readDocument(file)
	if err != nil {
		return false, err
	}
	if !root.IsGroup() {
		root.Section() // reports that the file is no group of keys
		return false, doc.Err()
	}
	return isDefinition(root), nil
}

// isDefinition tells whether a file has a key that only definitions have.
func isDefinition(root value) bool { return hasKey(root, "source", "forms", "load") }

// isSchema tells whether a file has one of the keys of schema files.
func isSchema(root value) bool {
	return hasKey(root, "columns", "unknown", "max_rejects", "max_columns", "empty", "hmac_key")
}

// hasKey tells whether root is a group that has one of the keys.
func hasKey(root value, keys ...string) bool {
	if !root.IsGroup() {
		return false
	}
	entries, _ := root.Entries()
	return slices.ContainsFunc(entries, func(e value) bool { return slices.Contains(keys, e.Key()) })
}
