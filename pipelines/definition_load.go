package pipelines

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
)

// Defaults of a definition.
const (
	DefaultConcurrency = 4
	DefaultTimeout     = 30 * time.Second
	DefaultRetries     = 8
	DefaultMaxRequests = 100_000
	DefaultSettle      = time.Minute
	DefaultLookback    = 3 * 24 * time.Hour
	DefaultState       = ".formetl" // folder beside the definition
)

// Bounds of what a definition may ask for.
const (
	maxConcurrency = 256
	maxRetries     = 100
	maxBudget      = 1_000_000_000
	maxTimeout     = time.Hour
	maxSpan        = 10 * 366 * 24 * time.Hour
)

// LoadOptions says what a definition is checked against.
type LoadOptions struct {
	// Lookup reads the environment; nil is an empty one.
	Lookup func(name string) (string, bool)
	// Formats and Schemes are those that the program is built with; a scheme
	// is the part of a path before "://", such as "s3".
	Formats []load.Format
	Schemes []string
	// Key, where it is set, is used instead of the definition's reference
	// (--api-key-file).
	Key transport.Secret
	// WithoutSecrets checks the form of the key's reference but needs no key.
	WithoutSecrets bool
}

// LoadDefinition reads a definition, checks it without any request and fills
// in the defaults. Everything that is wrong is reported at once, as a
// *DefinitionError.
func LoadDefinition(file string, o LoadOptions) (*Definition, error) {
	doc, root, err := readDocument(file)
	if err != nil {
		return nil, err
	}
	return decodeDefinition(doc, root, o)
}

// parseDefinition is LoadDefinition for bytes that were read from file.
func parseDefinition(file string, data []byte, o LoadOptions) (*Definition, error) {
	doc, root, err := parseDocument(file, data)
	if err != nil {
		return nil, err
	}
	return decodeDefinition(doc, root, o)
}

func decodeDefinition(doc *document, root value, o LoadOptions) (*Definition, error) {
	folder, err := filepath.Abs(filepath.Dir(doc.file))
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", doc.file, err)
	}
	doc.home = definitionHome
	r := &definitionReader{o: o, dir: folder, def: &Definition{
		File:   doc.file,
		State:  filepath.Join(folder, DefaultState),
		Source: Source{Requests: Requests{Concurrency: DefaultConcurrency, Timeout: DefaultTimeout, Retries: DefaultRetries, MaxRequests: DefaultMaxRequests}},
		Extract: Extract{
			Settle: DefaultSettle, Lookback: DefaultLookback, Verify: true,
		},
	}}
	r.root(root)
	doc.redact(r.def.Source.Key)
	doc.redact(r.hmacKey)
	if err := doc.err(); err != nil {
		return nil, err
	}
	return r.def, nil
}

// redact removes the key from every problem: a definition may repeat it
// where nobody expects it.
func (d *document) redact(key transport.Secret) {
	for i, p := range d.problems {
		p.Key, p.Message, p.Remedy, p.Excerpt = key.Redact(p.Key), key.Redact(p.Message), key.Redact(p.Remedy), key.Redact(p.Excerpt)
		d.problems[i] = p
	}
}

// definitionReader turns a document into a definition. What can be checked
// only with other keys known is kept with its place until root's end.
type definitionReader struct {
	o        LoadOptions
	dir      string
	def      *Definition
	keyGiven bool
	hmacKey  transport.Secret // for redacting
	baseURL  value
	from, to value
	forms    []value
	outputs  []placedOutput
	mode     value
	schema   value
}

// hmacKeys are those of a schema that stands in the definition.
func (r *definitionReader) hmacKeys() hmacKeys {
	return hmacKeys{wanted: !r.o.WithoutSecrets, dir: r.dir, lookup: r.o.Lookup}
}

// local makes a path of the definition absolute.
func (r *definitionReader) local(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(r.dir, p)
}

func (r *definitionReader) root(v value) {
	values := v.section(
		field{"version", true, readVersion},
		field{"name", true, r.readName},
		field{"source", true, r.readSource},
		field{"forms", true, func(v value) { r.forms, r.def.Forms = r.readForms(v) }},
		field{"exclude", false, func(v value) { _, r.def.Exclude = r.readForms(v) }},
		field{"state", false, r.readState},
		field{"names", false, func(v value) {
			word, _ := v.oneOf("id", "label")
			r.def.Labels = word == "label"
		}},
		field{"extract", false, r.readExtract},
		field{"schema", false, r.readSchema},
		field{"columns", false, r.readColumns},
		field{"load", true, r.readLoad},
	)
	if source, ok := values["source"]; ok {
		r.defaultKey(source)
	}
	r.checkRange()
	r.checkForms(values["exclude"])
	r.checkOutputs()
}

// readVersion reads the version of a definition or schema file: 1.
func readVersion(v value) {
	if s, ok := v.scalar(); !ok || s != "1" {
		v.secret = true // there is nothing to learn from it
		v.fail("write version: 1", "the only version that this program knows is 1")
	}
}

func (r *definitionReader) readName(v value) {
	name, ok := v.text()
	if !ok {
		return
	}
	if err := checkPathName("pipeline", name); err != nil {
		v.fail(err.remedy(), "the name %s cannot be used in a path: it %s", show(name), err.Reason)
		return
	}
	r.def.Name = name
}

func (r *definitionReader) readState(v value) {
	folder, ok := v.text()
	if !ok {
		return
	}
	switch scheme, _, remote := strings.Cut(folder, "://"); {
	case remote:
		v.fail("write a folder of this machine", "the state folder cannot lie at %s://", show(scheme))
	case strings.HasPrefix(folder, "~"):
		v.fail("write the folder in full", "~ is not replaced by a home folder")
	default:
		r.def.State = r.local(folder)
	}
}

// readForms reads a list of form names and globs.
func (r *definitionReader) readForms(v value) (places []value, forms []string) {
	for _, e := range v.list() {
		form, ok := e.text()
		if !ok {
			continue
		}
		if slices.Contains(forms, form) {
			e.fail("keep one of them", "the form %s is listed twice", show(form))
			continue
		}
		if IsGlob(form) {
			if _, err := path.Match(form, ""); err != nil {
				e.fail("close every [ with a ], or put a \\ before it", "%s is not a valid glob", show(form))
				continue
			}
			if strings.Contains(form, "/") {
				e.fail("write a glob for form directories, as `formetl forms` lists them", "%s matches no form: no form's name holds a slash", show(form))
				continue
			}
		} else if err := checkPathName("form", form); err != nil {
			e.fail("write the form's directory, as `formetl forms` lists it", "%s cannot be a form: it %s", show(form), err.Reason)
			continue
		}
		places, forms = append(places, e), append(forms, form)
	}
	return places, forms
}

// checkForms reports exclusions that leave no form.
func (r *definitionReader) checkForms(exclude value) {
	if len(r.def.Forms) == 0 || len(r.def.Exclude) == 0 {
		return
	}
	for _, form := range r.def.Forms {
		if IsGlob(form) || r.def.WantsForm(form) {
			return
		}
	}
	exclude.fail("remove a name from exclude", "every form that `forms` names is excluded")
}

// IsGlob tells whether an entry of forms or exclude is a glob (path.Match)
// rather than a name.
func IsGlob(form string) bool { return strings.ContainsAny(form, "*?[") }

// ListsForms tells whether the definition has a glob, so that the account's
// forms must be listed (Get Forms) to know which are meant.
func (d *Definition) ListsForms() bool { return slices.ContainsFunc(d.Forms, IsGlob) }

// WantsForm tells whether a form of the account is one of the definition's:
// an entry of Forms names or matches it and none of Exclude does.
func (d *Definition) WantsForm(form string) bool {
	named := func(pattern string) bool {
		if pattern == form || pattern == "*" { // all that Get Forms lists, whatever it is called
			return true
		}
		ok, err := path.Match(pattern, form) // patterns were checked when the definition was read
		return err == nil && ok
	}
	return slices.ContainsFunc(d.Forms, named) && !slices.ContainsFunc(d.Exclude, named)
}
