package pipelines

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// foldsCase tells whether the file systems of this machine usually take names that differ only
// in upper and lower case for the same name.
func foldsCase() bool { return runtime.GOOS == "darwin" || runtime.GOOS == "windows" }

// collisions returns errors, by form, for forms whose outputs would be written over or into
// each other: the names of forms are the service's, and two names may lead to the same path.
// Collisions that do not depend on the forms' names are errors when the definition is read.
func collisions(def *definition.Definition, forms []string, formats []load.Format, runID string, fold bool) map[string]error {
	clash := map[string]error{}
	each := *def // the definition with only those outputs that it writes for each form
	each.Outputs = slices.DeleteFunc(slices.Clone(def.Outputs), func(out definition.Output) bool { return !strings.Contains(out.Path, "{form}") })
	definition.Meet(each.Places(forms, formats, runID), fold, func(one, other definition.Place) {
		for _, p := range [][2]definition.Place{{other, one}, {one, other}} {
			if clash[p[0].Form] != nil {
				continue
			}
			form, otherForm := definition.Quote(p[0].Form), definition.Quote(p[1].Form)
			what := fmt.Sprintf("%s of form %s and %s of form %s would overwrite each other", p[0].Path, form, p[1].Path, otherForm)
			if p[0].Path == p[1].Path {
				what = fmt.Sprintf("forms %s and %s would both be written to %s", form, otherForm, p[0].Path)
			}
			clash[p[0].Form] = &definition.Fault{Code: 78, Text: what + "; exclude one of the forms, or write paths that differ by more than upper and lower case"}
		}
	})
	return clash
}

// FormsToRun lists the forms of a definition, and the faults of those that cannot be run one by
// one, because they would be written over or into another form.
func FormsToRun(ctx context.Context, def *definition.Definition, o Options) (forms []string, clashes map[string]error, err error) {
	o = o.WithDefaults()
	if forms, err = ListForms(ctx, def, o); err != nil {
		return nil, nil, err
	}
	return forms, collisions(def, forms, o.BuiltIn.Formats, o.RunID, foldsCase()), nil
}
