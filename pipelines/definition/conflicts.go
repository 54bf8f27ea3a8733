package definition

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// checkOutputs adds the child outputs of exploded lists, and reports outputs that do not fit the
// definition's forms, its mode, its schema or each other. It is called for the definition, and again
// for each form with a schema of its own.
func (r *reader) checkOutputs(names value) {
	likeFolder := func(c schemas.Column) bool { return c.Written() && strings.EqualFold(c.Name, schemas.PartitionKey) }
	several := len(r.def.Forms) > 1 || r.def.ListsForms()
	for _, out := range r.outputs {
		if several && !strings.Contains(out.Path, "{form}") {
			out.at.Fail("put {form} into the path, such as data/{form}.csv, or into the table's name, such as forms.{form}", "several forms would be written to this one place")
		}
		if r.def.Extract.Incremental && !out.Dataset() {
			out.at.Fail("write a folder with a slash at its end, such as feedback/, and format: beside it; or write mode: full, which reads everything in each run", "mode: incremental needs a dataset (a folder of files), and this path is a single file")
		}
		r.checkTable(out)
		if out.Partition != PartitionNone && out.Database == nil && r.def.Schema != nil && slices.ContainsFunc(r.def.Schema.Columns, likeFolder) {
			out.given["partition"].Fail("rename the column, or leave partition out",
				"the schema has a column %s, and the folders of the partition (dt=2026-01-31) have the same name: programs that read the dataset would show the folder's date in place of the column's value", schemas.PartitionKey)
		}
	}
	if r.def.Files != nil && several && !strings.Contains(r.def.Files.Path, "{form}") {
		r.files.at.Fail("put {form} into the path, such as files/{form}/", "several forms would store their files in this one folder, where files of two forms could have the same name")
	}
	if r.def.Names == schemas.ByHeading && r.def.Schema == nil && r.schemaFile == "" && slices.ContainsFunc(r.outputs, func(out placedOutput) bool { return out.Database != nil }) {
		names.Fail("write names: label", "names: heading makes column names of up to %d bytes, and a table takes at most %d", schemas.MaxHeading, schemas.MaxName)
	}
	if err := r.def.Explode(); err != nil {
		r.outputs[0].at.FailWith(err, "fix the schema")
	}
	protected := func(c schemas.Column) bool { return c.PII.Kind != schemas.PIINone }
	if s := r.def.Schema; s != nil && s.Adds() && slices.ContainsFunc(s.Columns, protected) {
		r.schema.Warn("in the schema, write unknown: ignore, which leaves new items out, or unknown: fail, which ends the run", "some columns have a pii rule, but items that are added to the form later are written without one (unknown: add)")
	}
	if s := r.def.Schema; s != nil && r.def.Files != nil && !s.Adds() && s.Find(schemas.Source{Kind: schemas.FromMeta, ID: "date_update"}) < 0 {
		r.schema.Warn(`add {name: updated, from: "meta:date_update", type: timestamp} to the schema's columns`, "no column tells when a result last changed, so a file that was replaced by another of the same name is not fetched again")
	}
	for _, out := range slices.Clone(r.outputs) {
		// A problem with a child output is reported at its parent.
		for range r.def.children() {
			if next := len(r.outputs); out.Database == nil && next < len(r.def.Outputs) {
				r.outputs = append(r.outputs, placedOutput{Output: r.def.Outputs[next], at: out.at})
			}
		}
	}
	r.checkPlaces()
}

// checkPlaces reports outputs that would write into each other. It fills each named form into
// the outputs' paths. The forms that a glob selects are not known yet: for these, {form} stays
// in the paths.
func (r *reader) checkPlaces() {
	note := func(out placedOutput) string { // a child output does not stand in the definition's file
		switch {
		case out.HasFileRows():
			return fmt.Sprintf("; formetl writes the list of uploaded files to %s", Quote(out.Path))
		case !out.Exploded():
			return ""
		}
		return fmt.Sprintf("; explode: true also writes the values of the list %s, to %s", out.Explode, Quote(out.Path))
	}
	reported := map[[2]int]bool{} // by both lines: if two outputs collide, so do their children
	places := r.def.Places(append([]string{"{form}"}, r.def.Forms...), r.o.Formats, "{run_id}")
	Meet(places, false, func(one, other Place) {
		at := func(i int) placedOutput {
			if i == len(r.def.Outputs) {
				return r.files
			}
			return r.outputs[i]
		}
		first, second := at(min(one.output, other.output)), at(max(one.output, other.output))
		lines := [2]int{first.at.Line(), second.at.Line()}
		if one.output == other.output || one.codebook && other.codebook || reported[lines] {
			return
		}
		reported[lines] = true
		second.at.Fail("give each its own path, neither inside the other; if a codebook is in the way, write codebook: false",
			"this output and %s on line %d would overwrite each other%s%s", first.at.path, first.at.Line(), note(first), note(second))
	})
}

// Place is a file, folder or table that an output of a form writes to.
type Place struct {
	Form, Path string
	output     int  // index in Definition.Outputs of the output that writes there, their number for uploaded files
	folder     bool // the place is a folder: all that lies below belongs to the output
	codebook   bool // the place is a codebook's, which outputs of one form may share
}

// Places returns the places that the outputs write to for the given forms: datasets, files, what
// lies beside a file, tables of exploded lists, codebooks, and the folder of uploaded files. For a
// form whose name cannot stand in a path, or whose schema cannot be read, there are none: the run of
// that form fails by itself.
func (d *Definition) Places(forms []string, formats []load.Format, runID string) (all []Place) {
	for _, form := range forms {
		d, err := d.For(form)
		if err != nil {
			continue
		}
		for i, out := range d.WithFiles() {
			expanded, err := ExpandPath(out.Path, d.PathValues(form, runID))
			if err != nil || out.Path == StdoutPath {
				continue
			}
			names := []string{expanded}
			if !out.Dataset() {
				names = append(names, load.FileManifestName(expanded), load.FileRejectsName(expanded))
			}
			if out.Database != nil {
				for _, c := range d.children() {
					names = append(names, ChildPath(expanded, c.Name))
				}
			}
			for _, name := range names {
				all = append(all, Place{Form: form, Path: name, output: i, folder: out.Dataset()})
			}
			if beside, ok := CodebookPlaceOf(out, expanded, formats); ok {
				for _, name := range beside.Paths() {
					all = append(all, Place{Form: form, Path: name, output: i, codebook: true})
				}
			}
		}
	}
	return all
}

// Meet calls report for each two places that would be written over or into each other. With
// fold, paths that differ in case alone are the same, as on macOS and Windows.
func Meet(places []Place, fold bool, report func(one, other Place)) {
	taken := map[string]Place{}
	for _, p := range places {
		key := p.key(fold)
		other, is := taken[key]
		if !is {
			taken[key] = p
		} else if !p.codebook || !other.codebook || p.Form != other.Form {
			report(other, p)
		}
	}
	for _, p := range places {
		key := p.key(fold)
		for i := strings.LastIndexByte(key, '/'); i > 0; i = strings.LastIndexByte(key[:i], '/') {
			if other, is := taken[key[:i]]; is && other.folder {
				report(other, p)
			}
		}
	}
}

// key returns a text that is equal for paths that lead to the same file, folder or table. With
// fold, case does not count in local paths.
func (p Place) key(fold bool) string {
	key := strings.TrimSuffix(p.Path, "/")
	if strings.Contains(key, "://") {
		return key // S3 and databases take names literally: no cleaning, no folding of case
	}
	if key = path.Clean(filepath.ToSlash(key)); fold {
		key = strings.ToLower(key)
	}
	return key
}
