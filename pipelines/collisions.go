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

// CollisionError is a form that would be written over another form's files, or
// into another form's dataset. Forms are named by the service, and two names may
// lead to one place.
type CollisionError struct {
	Form, Path      string
	Other, OtherOne string // the other form, which may be the same one, and its path
}

// Error names both and the way out.
func (e *CollisionError) Error() string {
	what := fmt.Sprintf("%s of form %s would be written over or into %s of form %s", e.Path, definition.Quote(e.Form), e.OtherOne, definition.Quote(e.Other))
	if e.Path == e.OtherOne {
		what = fmt.Sprintf("forms %s and %s would both be written to %s", definition.Quote(e.Form), definition.Quote(e.Other), e.Path)
	}
	return what + "; exclude one of them, or write paths that keep them apart"
}

// ExitCode is 78: the definition has to keep the forms apart.
func (e *CollisionError) ExitCode() int { return 78 }

// foldsCase tells whether the file systems of this machine take names that
// differ in case alone for one.
func foldsCase() bool { return runtime.GOOS == "darwin" || runtime.GOOS == "windows" }

// collisions finds the forms whose outputs would be written over or into each
// other. It is about the names that Get Forms gave: collisions that the definition
// alone tells of are errors when it is read.
func collisions(def *definition.Definition, forms []string, formats []load.Format, runID string, fold bool) map[string]*CollisionError {
	clash := map[string]*CollisionError{}
	each := *def // what it writes for each form
	each.Outputs = slices.DeleteFunc(slices.Clone(def.Outputs), func(out definition.Output) bool { return !strings.Contains(out.Path, "{form}") })
	definition.Meet(each.Places(forms, formats, runID), fold, func(one, other definition.Place) {
		for _, e := range []*CollisionError{{other.Form, other.Path, one.Form, one.Path}, {one.Form, one.Path, other.Form, other.Path}} {
			if clash[e.Form] == nil {
				clash[e.Form] = e
			}
		}
	})
	return clash
}

// FormsToRun lists the forms of a definition that can be run one by one, and those that would
// be written over or into another form.
func FormsToRun(ctx context.Context, def *definition.Definition, o Options) (forms []string, clashes []*CollisionError, err error) {
	o = o.WithDefaults()
	all, err := ListForms(ctx, def, o)
	if err != nil {
		return nil, nil, err
	}
	clash := collisions(def, all, o.Tables.Formats, o.RunID, foldsCase())
	for _, form := range all {
		if e := clash[form]; e != nil {
			clashes = append(clashes, e)
		} else {
			forms = append(forms, form)
		}
	}
	return forms, clashes, nil
}
