package definition

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/formetl/formetl/schemas"
)

// formEntry is an entry of forms that is a group of keys: what the forms that it means have in
// place of the definition's schema and lower bound.
type formEntry struct {
	form  string // a form's name, or a glob
	given map[string]value
	from  Bound
}

// readEntry reads an entry of forms, and returns its name.
func (r *reader) readEntry(v value) (name value, ok bool) {
	if !v.IsGroup() {
		return v, true
	}
	var e formEntry
	e.given = v.Section(
		required("name", nil), // readForms reads it
		optional("schema", func(v value) { readSchemaPath(v) }),
		optional("from", intoParsed(&e.from, ParseBound, "")),
	)
	name, ok = e.given["name"]
	e.form, _ = name.Scalar()
	r.entries = append(r.entries, e)
	return name, ok
}

// readSchemaPath reads the path of a schema file.
func readSchemaPath(v value) (file string, ok bool) {
	file, ok = v.Text()
	if err := CheckLocal(file); err != nil {
		v.FailWith(err, "")
		return "", false
	}
	return file, ok
}

// exactness orders entries of forms by how exactly they mean a form: a form's name goes before
// every glob, and a longer glob before a shorter one.
func exactness(e formEntry) int {
	if IsGlob(e.form) {
		return len(e.form)
	}
	return math.MaxInt
}

// checkForms puts the entries into the order of their exactness, and warns of one schema for
// several forms.
func (r *reader) checkForms() {
	slices.SortStableFunc(r.entries, func(a, b formEntry) int { return cmp.Compare(exactness(b), exactness(a)) })
	shared := slices.DeleteFunc(slices.Clone(r.def.Forms), func(form string) bool { return r.chosen(form, "schema").given != nil })
	if r.def.Schema != nil && (len(shared) > 1 || slices.ContainsFunc(shared, IsGlob)) {
		r.schema.Warn("give each form its own: schema: schemas/{form}.yaml, or forms: [{name: "+shared[0]+", schema: …}]", "several forms share this schema, but the same item id means another question in each form")
	}
}

// chosen returns the entry that gives a key to a form: the most exact one that has the key. Two
// that are equally exact are a problem.
func (r *reader) chosen(form, key string) (chosen formEntry) {
	for _, e := range r.entries {
		v := e.given[key]
		switch {
		case !v.Given() || !Matches(e.form, form):
		case chosen.given == nil:
			chosen = e
		case exactness(chosen) == exactness(e):
			v.Fail("add an entry with the form's full name", "%s and %s on line %d both match the form, so it is not clear which of the two counts", Quote(e.form), Quote(chosen.form), chosen.given[key].Line())
		}
	}
	return chosen
}

// perForm reads what single forms of a definition have of their own, by the reader of the
// definition.
type perForm struct {
	mu sync.Mutex
	reader
}

// For returns the definition of one form: with the schema, the lower bound and the child outputs
// that are the form's own, because an entry of forms says so or because the path of the schema file
// has {form}. Whatever is done for a form goes by its definition, and the commands that it proposes
// leave other forms alone. The error, of exit code 78, is of the form's schema alone: what needs no
// schema may go by the definition all the same.
func (d *Definition) For(form string) (*Definition, error) {
	own := *d
	if d.File != "" && !slices.Equal(d.Forms, []string{form}) && !slices.Contains(d.Given, "--form") {
		own.Given = append(slices.Clone(d.Given), "--form", form)
	}
	if d.perForm == nil {
		return &own, nil
	}
	d.perForm.mu.Lock()
	defer d.perForm.mu.Unlock()
	r, of := d.perForm.reader, *d.perForm.def
	r.def = &of
	err := r.decodeFor(form)
	own.perForm, own.Schema, own.Extract.From, own.Warnings = nil, of.Schema, of.Extract.From, of.Warnings
	own.Outputs = slices.Clone(d.Outputs)
	return &own, cmp.Or(err, own.Explode())
}

// decodeFor makes the definition that r has read that of one form.
func (r *reader) decodeFor(form string) (err error) {
	doc := r.doc
	doc.problems, doc.warnings, doc.refused, doc.about = nil, nil, map[string]bool{}, "form "+form+": "
	r.def.Warnings = nil
	if e := r.chosen(form, "from"); e.given != nil {
		r.def.Extract.From = Range{From: e.from}.In(r.def.Source.Zone, r.o.Now()).From
	}
	file := r.schemaFile
	if e := r.chosen(form, "schema"); e.given != nil {
		r.schema = e.given["schema"]
		file, _ = r.schema.Scalar()
	}
	if file != "" {
		if r.def.Schema, err = r.loadFor(form, file); err != nil {
			return err
		}
		r.def.Forms, r.def.Outputs = []string{form}, slices.Clone(r.def.Outputs)
		r.outputs = slices.DeleteFunc(slices.Clone(r.outputs), func(out placedOutput) bool { return out.Exploded() })
		r.checkOutputs(value{})
	}
	r.def.Warnings = doc.ready(doc.warnings)
	return doc.Err()
}

// loadFor reads the schema file of a form. Each file is read once, so that all of a command goes by
// one schema.
func (r *reader) loadFor(form, file string) (*schemas.Schema, error) {
	file, err := ExpandPath(r.local(file), r.def.PathValues(form, ""))
	if err != nil || r.loaded[file] != nil {
		return r.loaded[file], err
	}
	schema, err := LoadSchema(file, r.secrets)
	if !errors.Is(err, fs.ErrNotExist) {
		r.loaded[file] = schema
		return schema, err
	}
	infers := Definition{File: r.def.File, Source: r.def.Source}
	for _, name := range slices.Sorted(maps.Keys(r.o.Variables)) {
		infers.Given = append(infers.Given, "--var", name+"="+r.o.Variables[name])
	}
	return nil, &Fault{Code: 78, Text: fmt.Sprintf("the schema file %s of form %s does not exist; create it with `%s`",
		file, form, infers.Command("schema infer", "--form", ShellWord(form), "-o", ShellWord(file)))}
}

// KnownForms returns the forms that are known without a request and may have something of their
// own: those that the definition names, and those of its globs for which there is a file of schema:
// schemas/{form}.yaml.
func (d *Definition) KnownForms() []string {
	if d.perForm == nil {
		return nil
	}
	forms := slices.Clone(d.Forms)
	if glob, err := ExpandPath(d.perForm.local(d.perForm.schemaFile), d.PathValues("*", "")); err == nil {
		before, after, _ := strings.Cut(glob, "*")
		files, _ := filepath.Glob(glob)
		for _, file := range files {
			forms = append(forms, strings.TrimSuffix(strings.TrimPrefix(file, before), after))
		}
	}
	slices.Sort(forms)
	return slices.DeleteFunc(slices.Compact(forms), func(form string) bool { return IsGlob(form) || noPathName(form) != "" || !d.WantsForm(form) })
}

// CheckForms checks what forms have of their own, and returns the warnings of their definitions.
func (d *Definition) CheckForms(forms []string) (warnings []Problem, err error) {
	for _, form := range forms {
		own, wrong := d.For(form)
		warnings, err = append(warnings, own.Warnings...), errors.Join(err, wrong)
	}
	return warnings, err
}
