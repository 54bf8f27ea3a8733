package pipelines

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// NamedForms returns the forms that are known without asking the service, and the
// globs that only Get Forms can resolve.
func NamedForms(def *definition.Definition, o Options) (forms, patterns []string) {
	if len(o.Forms) > 0 {
		for _, f := range o.Forms {
			if def.WantsForm(f) && !slices.Contains(forms, f) {
				forms = append(forms, f)
			}
		}
		return forms, nil
	}
	for _, f := range def.Forms {
		switch {
		case definition.IsGlob(f):
			patterns = append(patterns, f)
		case def.WantsForm(f):
			forms = append(forms, f)
		}
	}
	return forms, patterns
}

// NeedsForms tells whether ListForms asks the service: the definition has globs,
// and Options.Forms names no form.
func NeedsForms(def *definition.Definition, o Options) bool {
	return def.ListsForms() && len(o.Forms) == 0
}

// ListForms returns the forms that a run of the definition would read. It asks the service
// only if NeedsForms is true. A form that Options.Forms names need not exist any more.
func ListForms(ctx context.Context, def *definition.Definition, o Options) ([]string, error) {
	if !NeedsForms(def, o) {
		return Forms(ctx, nil, def, o)
	}
	client, err := NewClient(ctx, def, o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return Forms(ctx, client, def, o)
}

// Forms returns the forms that a run reads: those that the definition or Options.Forms names,
// and those of Get Forms that a glob matches. A new form is read from its beginning. A form
// that a glob matched and the service no longer lists is not read, and its outputs stay. What is
// wrong with a schema of a named form is an error before the service is asked. The client may be
// nil if NeedsForms is false.
func Forms(ctx context.Context, client extract.Client, def *definition.Definition, o Options) (forms []string, err error) {
	named, _ := NamedForms(def, o)
	if _, err = def.CheckForms(named); err != nil {
		return nil, err
	}
	if NeedsForms(def, o) {
		if forms, err = matching(ctx, client, def, o); err != nil {
			return nil, err
		}
	}
	for _, form := range named {
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	if len(forms) == 0 {
		return nil, noForms(def, o.Forms)
	}
	return forms, nil
}

// matching asks for the account's forms, and returns those that the definition wants. It
// warns of globs and excluded names that match no form: most likely they are misspelt.
func matching(ctx context.Context, client extract.Client, def *definition.Definition, o Options) (forms []string, err error) {
	listed, err := client.Forms(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range listed {
		if def.WantsForm(f.Directory) && !slices.Contains(forms, f.Directory) {
			forms = append(forms, f.Directory)
		}
	}
	_, patterns := NamedForms(def, o)
	for _, entry := range slices.Concat(patterns, def.Exclude) {
		if o.Logger != nil && !slices.ContainsFunc(listed, func(f extract.Form) bool { return definition.Matches(entry, f.Directory) }) {
			o.Logger.LogAttrs(ctx, slog.LevelWarn, "an entry under forms or exclude matches no form of the account; check its spelling", slog.String("form", entry))
		}
	}
	return forms, nil
}

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
			clash[p[0].Form] = &definition.Fault{Code: 78, Text: what + "; exclude one of the forms, or give it a definition with other paths"}
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
