package definition

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
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

// Upper bounds of what a definition may ask for.
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

// Load reads a definition, checks it without any request and fills in the
// defaults. Everything that is wrong is reported at once, as an *Error.
func Load(file string, o LoadOptions) (*Definition, error) {
	doc, root, err := strictyaml.Read(file)
	if err != nil {
		return nil, err
	}
	return decode(doc, root, o)
}

func decode(doc *strictyaml.Document, root strictyaml.Value, o LoadOptions) (*Definition, error) {
	folder, err := filepath.Abs(filepath.Dir(doc.File()))
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", doc.File(), err)
	}
	doc.SetHome(homeOf)
	r := &reader{o: o, dir: folder, def: &Definition{
		File:   doc.File(),
		State:  filepath.Join(folder, DefaultState),
		Source: Source{Requests: Requests{Concurrency: DefaultConcurrency, Timeout: DefaultTimeout, Retries: DefaultRetries, MaxRequests: DefaultMaxRequests}},
		Extract: Extract{
			Settle: DefaultSettle, Lookback: DefaultLookback, Verify: true,
		},
	}}
	r.root(root)
	doc.Redact(r.def.Source.Key.Redact)
	doc.Redact(r.hmacKey.Redact)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return r.def, nil
}

// reader turns a document into a definition. It keeps the values that can only be
// checked once other keys are known, and root checks them at its end.
type reader struct {
	o        LoadOptions
	dir      string
	def      *Definition
	keyGiven bool
	hmacKey  transport.Secret // is redacted from all problems
	baseURL  strictyaml.Value
	to       strictyaml.Value
	outputs  []placedOutput
	schema   strictyaml.Value
}

// hmacKeys says where the key of a schema is looked for that stands in the
// definition itself.
func (r *reader) hmacKeys() hmacKeys {
	return hmacKeys{wanted: !r.o.WithoutSecrets, dir: r.dir, lookup: r.o.Lookup}
}

// local makes a path absolute that may be relative to the definition's folder.
func (r *reader) local(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(r.dir, p)
}

func (r *reader) root(v strictyaml.Value) {
	values := v.Section(
		strictyaml.Required("version", readVersion),
		strictyaml.Required("name", r.readName),
		strictyaml.Required("source", r.readSource),
		strictyaml.Required("forms", func(v strictyaml.Value) { r.def.Forms = readForms(v) }),
		strictyaml.Optional("exclude", func(v strictyaml.Value) { r.def.Exclude = readForms(v) }),
		strictyaml.Optional("state", r.readState),
		strictyaml.Optional("checkpoint", func(v strictyaml.Value) {
			word, _ := v.OneOf("state", "destination")
			r.def.CheckpointAtDestination = word == "destination"
		}),
		strictyaml.Optional("names", func(v strictyaml.Value) {
			word, _ := v.OneOf("id", "label")
			r.def.Labels = word == "label"
		}),
		strictyaml.Optional("extract", r.readExtract),
		strictyaml.Optional("schema", r.readSchema),
		strictyaml.Optional("columns", r.readColumns),
		strictyaml.Required("load", r.readLoad),
	)
	if source, ok := values["source"]; ok {
		r.defaultKey(source)
	}
	r.checkRange()
	checkForms(r.def, values["exclude"])
	r.checkOutputs()
}

// readVersion reads the version of a definition or schema file, which must be 1.
func readVersion(v strictyaml.Value) {
	if s, ok := v.Scalar(); !ok || s != "1" {
		// An excerpt would not help: the remedy says all.
		v.Hidden().Fail("write version: 1", "the only version that this program knows is 1")
	}
}

func (r *reader) readName(v strictyaml.Value) {
	name, ok := v.Text()
	if !ok {
		return
	}
	if err := checkPathName("pipeline", name); err != nil {
		v.Fail(err.remedy(), "the name %s cannot be used in a path: it %s", strictyaml.Quote(name), err.Reason)
		return
	}
	r.def.Name = name
}

func (r *reader) readState(v strictyaml.Value) {
	folder, ok := v.Text()
	if !ok {
		return
	}
	switch scheme, _, remote := strings.Cut(folder, "://"); {
	case remote:
		v.Fail("write a folder of this machine", "the state folder cannot lie at %s://", strictyaml.Quote(scheme))
	case strings.HasPrefix(folder, "~"):
		v.Fail("write the folder in full", "~ is not replaced by a home folder")
	default:
		r.def.State = r.local(folder)
	}
}

// readForms reads a list of form names and globs.
func readForms(v strictyaml.Value) []string {
	var forms []string
	for _, e := range v.List() {
		form, ok := e.Text()
		if !ok {
			continue
		}
		if slices.Contains(forms, form) {
			e.Fail("keep one of them", "the form %s is listed twice", strictyaml.Quote(form))
			continue
		}
		if IsGlob(form) {
			if _, err := path.Match(form, ""); err != nil {
				e.Fail("close every [ with a ], or put a \\ before it", "%s is not a valid glob", strictyaml.Quote(form))
				continue
			}
			if strings.Contains(form, "/") {
				e.Fail("write a glob for form directories, as `formetl forms` lists them", "%s matches no form: no form's name holds a slash", strictyaml.Quote(form))
				continue
			}
		} else if err := checkPathName("form", form); err != nil {
			e.Fail("write the form's directory, as `formetl forms` lists it", "%s cannot be a form: it %s", strictyaml.Quote(form), err.Reason)
			continue
		}
		forms = append(forms, form)
	}
	return forms
}

// checkForms reports an exclude list that leaves no form.
func checkForms(d *Definition, exclude strictyaml.Value) {
	if len(d.Forms) == 0 || len(d.Exclude) == 0 {
		return
	}
	for _, form := range d.Forms {
		if IsGlob(form) || d.WantsForm(form) {
			return
		}
	}
	exclude.Fail("remove a name from exclude", "every form that `forms` names is excluded")
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
		if pattern == form || pattern == "*" { // "*" matches every form that Get Forms lists, whatever its name
			return true
		}
		ok, err := path.Match(pattern, form) // patterns were checked when the definition was read
		return err == nil && ok
	}
	return slices.ContainsFunc(d.Forms, named) && !slices.ContainsFunc(d.Exclude, named)
}

// Is tells by its keys whether a YAML file is a definition rather than a schema
// file. The error is an *Error where the file is neither.
func Is(file string) (bool, error) {
	doc, root, err := strictyaml.Read(file)
	if err != nil {
		return false, err
	}
	entries, ok := root.Entries()
	if !ok {
		return false, doc.Err()
	}
	for _, e := range entries {
		switch e.Key() {
		case "source", "forms", "load":
			return true, nil
		}
	}
	return false, nil
}
