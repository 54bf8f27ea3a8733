package pipelines

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/internal/strictyaml"
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
	what := fmt.Sprintf("%s of form %s would be written over or into %s of form %s", e.Path, strictyaml.Quote(e.Form), e.OtherOne, strictyaml.Quote(e.Other))
	if e.Path == e.OtherOne {
		what = fmt.Sprintf("forms %s and %s would both be written to %s", strictyaml.Quote(e.Form), strictyaml.Quote(e.Other), e.Path)
	}
	return what + "; exclude one of them, or write paths that keep them apart"
}

// foldsCase tells whether the file systems of this machine take names that
// differ in case alone for one.
func foldsCase() bool { return runtime.GOOS == "darwin" || runtime.GOOS == "windows" }

// claim is a place that an output of a form takes.
type claim struct {
	form, path string
	folder     bool // the claim holds for all that lies below
	shared     bool // outputs of one form may share the place: its codebook
}

// collisions finds the forms whose outputs would be written over or into each
// other. It is about the names that Get Forms gave: collisions that the definition
// alone tells of are errors when it is read.
func collisions(def *definition.Definition, forms []string, formats []load.Format, runID string, fold bool) map[string]*CollisionError {
	clash := map[string]*CollisionError{}
	taken := map[string]claim{}
	meet := func(c, other claim) {
		for _, e := range []*CollisionError{{c.form, c.path, other.form, other.path}, {other.form, other.path, c.form, c.path}} {
			if clash[e.Form] == nil {
				clash[e.Form] = e
			}
		}
	}
	all := claims(def, forms, formats, runID)
	for _, c := range all {
		key := c.key(fold)
		if other, ok := taken[key]; ok {
			if !c.shared || !other.shared || c.form != other.form {
				meet(c, other)
			}
			continue
		}
		taken[key] = c
	}
	for _, c := range all {
		key := c.key(fold)
		for above := path.Dir(key); len(above) > 1; above = path.Dir(above) {
			if other, ok := taken[above]; ok && other.folder {
				meet(c, other)
			}
		}
	}
	return clash
}

// claims are the places that outputs have for each form: datasets, files, what
// lies beside a file, and codebooks. A form whose name cannot be a path has none,
// because it fails by itself.
func claims(def *definition.Definition, forms []string, formats []load.Format, runID string) (all []claim) {
	for _, form := range forms {
		for _, out := range def.Outputs {
			if !strings.Contains(out.Path, "{form}") {
				continue // not with several forms, see checkOutputs
			}
			expanded, err := definition.ExpandPath(out.Path, def.PathValues(form, runID))
			if err != nil {
				continue
			}
			names := []string{expanded}
			if !out.Dataset() {
				names = append(names, load.FileManifestName(expanded), load.FileRejectsName(expanded))
			}
			for _, name := range names {
				all = append(all, claim{form: form, path: name, folder: out.Dataset()})
			}
			if beside, ok := definition.CodebookPlaceOf(out, expanded, formats); ok {
				for _, name := range beside.Paths() {
					all = append(all, claim{form: form, path: name, shared: true})
				}
			}
		}
	}
	return all
}

// key is equal for paths that lead to one place.
func (c claim) key(fold bool) string {
	key := strings.TrimSuffix(c.path, "/")
	if strings.Contains(key, "://") {
		return key // object stores know no folders: a name is as it is written
	}
	if key = path.Clean(filepath.ToSlash(key)); fold {
		key = strings.ToLower(key)
	}
	return key
}

// FormsToRun lists the forms of a definition that can be run one by one, and those that would
// be written over or into another form.
func FormsToRun(ctx context.Context, def *definition.Definition, o account.Options) (forms []string, clashes []*CollisionError, err error) {
	o = o.WithDefaults()
	all, err := account.ListForms(ctx, def, o)
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
