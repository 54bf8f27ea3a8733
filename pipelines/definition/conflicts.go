package definition

import (
	"path"
	"slices"
	"strings"

	"github.com/formetl/formetl/pipelines/internal/strictyaml"
	"github.com/formetl/formetl/schemas"
)

// checkOutputs adds the child outputs, and reports outputs that do not fit the
// forms, the mode, the schema or each other.
func (r *reader) checkOutputs() {
	several := len(r.def.Forms) > 1 || r.def.ListsForms()
	for _, out := range r.outputs {
		if out.Path == "" {
			continue
		}
		if several && !strings.Contains(out.Path, "{form}") {
			out.path.Fail("put {form} into the path", "several forms would be written to one place: %s", whySeveral(r.def.Forms))
		}
		if r.def.Extract.Incremental && !out.Dataset() {
			out.path.Fail("end the path with a slash for a dataset, or write mode: full", "mode: incremental adds to what is there, and a single file holds exactly its run's range")
		}
		r.checkTableID(out)
		if out.Partition != PartitionNone && out.Database == nil && r.def.Schema != nil && hasPartitionKey(r.def.Schema.Columns) {
			out.partition.Fail("give the column another name, or leave partition out",
				"the schema has a column %s, and so have the folders dt=...: readers would show the folder's in its place", schemas.PartitionKey)
		}
	}
	r.addChildren()
	r.checkPlaces()
}

// hasPartitionKey tells whether readers of a partitioned dataset would take a
// folder's key for one of the columns.
func hasPartitionKey(columns []schemas.Column) bool {
	return slices.ContainsFunc(columns, func(c schemas.Column) bool {
		return c.Written() && strings.EqualFold(c.Name, schemas.PartitionKey)
	})
}

// whySeveral tells why the definition may have several forms.
func whySeveral(forms []string) string {
	if i := slices.IndexFunc(forms, IsGlob); i >= 0 {
		return "`forms` has the glob " + strictyaml.Quote(forms[i])
	}
	return "`forms` has more than one entry"
}

// checkPlaces reports outputs that would write into each other. It compares their
// paths with each named form filled in. Forms that a glob selects are not known
// yet, so {form} stays in their paths.
func (r *reader) checkPlaces() {
	reported := map[[2]int]bool{} // pairs of lines: children of two outputs that collide collide too
	places := map[string]int{}    // the first output at each path
	report := func(i, j int, remedy, message string) {
		i, j = min(i, j), max(i, j)
		lines := [2]int{r.outputs[i].path.Line(), r.outputs[j].path.Line()}
		if i == j || reported[lines] {
			return
		}
		reported[lines] = true
		r.outputs[j].path.Fail(remedy, message+"%s%s", r.outputs[i].path.Path(), r.outputs[i].path.Line(), r.outputs[i].childNote(), r.outputs[j].childNote())
	}
	each := func(visit func(i int, expanded string)) {
		for i, out := range r.outputs {
			if out.Path == "" {
				continue
			}
			for _, form := range append([]string{"{form}"}, r.def.Forms...) {
				visit(i, strings.TrimSuffix(strings.ReplaceAll(out.Path, "{form}", form), "/"))
			}
		}
	}
	each(func(i int, expanded string) {
		if first, taken := places[expanded]; taken {
			report(first, i, "give each output a path of its own", "two outputs have one path, this and %s on line %d")
			return
		}
		places[expanded] = i
	})
	each(func(i int, expanded string) {
		out := r.outputs[i].Output
		if out.Dataset() {
			expanded += "/"
		}
		beside, ok := CodebookPlaceOf(out, expanded, r.o.Formats)
		if !ok {
			return
		}
		for _, name := range beside.Paths() {
			if other, taken := places[name]; taken {
				report(other, i, "give one of them another name, or write codebook: false", "of this output and %s on line %d one is written where the codebook of the other is")
			}
		}
	})
	each(func(i int, expanded string) {
		for folder := path.Dir(expanded); len(folder) > 1; folder = path.Dir(folder) {
			outer, ok := places[folder]
			if ok && r.outputs[outer].Dataset() {
				report(outer, i, "put the outputs side by side, not one into the other", "one of this output and %s on line %d lies in the other's dataset folder, where it would be read as data")
			}
		}
	})
}
