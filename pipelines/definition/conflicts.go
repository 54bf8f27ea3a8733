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

// checkOutputs adds the child outputs, and reports outputs that do not fit the
// forms, the mode, the schema or each other.
func (r *reader) checkOutputs() {
	likeFolder := func(c schemas.Column) bool { return c.Written() && strings.EqualFold(c.Name, schemas.PartitionKey) }
	several := len(r.def.Forms) > 1 || r.def.ListsForms()
	for _, out := range r.outputs {
		if several && !strings.Contains(out.Path, "{form}") {
			out.at.Fail("put {form} into the path", "`forms` has a glob or more than one entry, so several forms would be written to one place")
		}
		if r.def.Extract.Incremental && !out.Dataset() {
			out.at.Fail("end the path with a slash for a dataset, or write mode: full", "mode: incremental adds to what is there, and a single file holds exactly its run's range")
		}
		r.checkTable(out)
		if out.Partition != PartitionNone && out.Database == nil && r.def.Schema != nil && slices.ContainsFunc(r.def.Schema.Columns, likeFolder) {
			out.given["partition"].Fail("give the column another name, or leave partition out",
				"the schema has a column %s, and so have the folders dt=...: readers would show the folder's in its place", schemas.PartitionKey)
		}
	}
	if err := r.def.Explode(); err != nil {
		r.outputs[0].at.FailWith(err, "mend the schema")
	}
	for _, out := range slices.Clone(r.outputs) { // problems with a child are reported at its parent
		for range r.def.exploded() {
			if next := len(r.outputs); out.Database == nil && next < len(r.def.Outputs) {
				r.outputs = append(r.outputs, placedOutput{Output: r.def.Outputs[next], at: out.at})
			}
		}
	}
	r.checkPlaces()
}

// checkPlaces reports outputs that would write into each other. It fills each named form
// into their paths. Forms that a glob selects are not known yet, so {form} stays there.
func (r *reader) checkPlaces() {
	note := func(out placedOutput) string { // people do not find a child in their file
		if !out.Exploded() {
			return ""
		}
		return fmt.Sprintf("; %s is the child output of the list from %s (explode: true)", Quote(out.Path), out.Explode)
	}
	reported := map[[2]int]bool{} // pairs of lines: children of two outputs that collide collide too
	places := r.def.Places(append([]string{"{form}"}, r.def.Forms...), r.o.Formats, "{run_id}")
	Meet(places, false, func(one, other Place) {
		first, second := r.outputs[min(one.output, other.output)], r.outputs[max(one.output, other.output)]
		lines := [2]int{first.at.Line(), second.at.Line()}
		if one.output == other.output || one.codebook && other.codebook || reported[lines] {
			return
		}
		reported[lines] = true
		second.at.Fail("give each a path of its own, side by side; where a codebook is in the way, write codebook: false",
			"this output and %s on line %d would be written over or into each other%s%s", first.at.path, first.at.Line(), note(first), note(second))
	})
}

// Place is a place that an output of a form writes to.
type Place struct {
	Form, Path string
	output     int  // its index in Outputs
	folder     bool // it holds for all that lies below
	codebook   bool // outputs of one form may share it
}

// Places are those of the outputs for some forms: datasets, files, what lies beside a file,
// tables of exploded lists, and codebooks. A form whose name cannot be a path has none, because it fails by itself.
func (d *Definition) Places(forms []string, formats []load.Format, runID string) (all []Place) {
	for _, form := range forms {
		for i, out := range d.Outputs {
			expanded, err := ExpandPath(out.Path, d.PathValues(form, runID))
			if err != nil || out.Path == StdoutPath {
				continue
			}
			names := []string{expanded}
			if !out.Dataset() {
				names = append(names, load.FileManifestName(expanded), load.FileRejectsName(expanded))
			}
			if out.Database != nil {
				for _, c := range d.exploded() {
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

// Meet reports places that would be written over or into each other. With fold,
// names that differ in case alone are one.
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

// key is equal for paths that lead to one place.
func (p Place) key(fold bool) string {
	key := strings.TrimSuffix(p.Path, "/")
	if strings.Contains(key, "://") {
		return key // a store takes names as they are written
	}
	if key = path.Clean(filepath.ToSlash(key)); fold {
		key = strings.ToLower(key)
	}
	return key
}
