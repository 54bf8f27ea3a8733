package account

import (
	"context"
	"log/slog"
	"slices"

	"github.com/formetl/formetl/extract"
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

// ListForms gives the forms that a run of the definition would read. A form that
// Options.Forms names need not exist any more.
func ListForms(ctx context.Context, def *definition.Definition, o Options) ([]string, error) {
	if !NeedsForms(def, o) {
		forms, _ := NamedForms(def, o)
		return forms, someForms(def, o, forms)
	}
	client, err := NewClient(ctx, def, o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return Forms(ctx, client, def, o)
}

// someForms fails where no form is left.
func someForms(def *definition.Definition, o Options, forms []string) error {
	if len(forms) > 0 {
		return nil
	}
	return &NoFormsError{Patterns: def.Forms, Chosen: o.Forms}
}

// Forms returns the forms that a run reads: those that are named, and those of Get
// Forms that a glob matches. A new form is read from its beginning. A form that the
// service no longer lists is not read, and its outputs stay.
func Forms(ctx context.Context, client extract.Client, def *definition.Definition, o Options) ([]string, error) {
	var names []string
	if !NeedsForms(def, o) {
		names, _ = NamedForms(def, o) // those that are chosen need not be listed
	} else {
		listed, err := client.Forms(ctx)
		if err != nil {
			return nil, err
		}
		for _, f := range listed {
			names = append(names, f.Directory)
		}
		tellIdle(ctx, def, o, names)
		for _, f := range def.Forms {
			if !definition.IsGlob(f) {
				names = append(names, f)
			}
		}
	}
	var forms []string
	seen := map[string]bool{}
	for _, f := range names {
		if seen[f] || !def.WantsForm(f) || len(o.Forms) > 0 && !slices.Contains(o.Forms, f) {
			continue
		}
		seen[f] = true
		forms = append(forms, f)
	}
	if err := someForms(def, o, forms); err != nil {
		return nil, err
	}
	for _, f := range forms {
		// A form that is named and cannot be a path is an error before any work;
		// one that the service listed fails by itself.
		if slices.Contains(def.Forms, f) {
			if err := checkPaths(def, f, o.RunID); err != nil {
				return nil, err
			}
		}
	}
	return forms, nil
}

// tellIdle warns of entries of forms and exclude that match none of the account's forms:
// most likely they are misspelt.
func tellIdle(ctx context.Context, def *definition.Definition, o Options, listed []string) {
	if o.Logger == nil {
		return
	}
	idle := func(entry string) bool {
		return !slices.ContainsFunc(listed, func(form string) bool { return definition.Matches(entry, form) })
	}
	for _, entry := range def.Forms {
		if definition.IsGlob(entry) && idle(entry) { // a form that is named need not be listed
			o.Logger.LogAttrs(ctx, slog.LevelWarn, "a pattern of the definition's forms matches none of the account", slog.String("form", entry))
		}
	}
	for _, entry := range def.Exclude {
		if idle(entry) {
			o.Logger.LogAttrs(ctx, slog.LevelWarn, "an entry of the definition's exclude matches none of the account's forms", slog.String("form", entry))
		}
	}
}

// checkPaths tells whether the outputs' paths can be made for a form.
func checkPaths(def *definition.Definition, form, runID string) error {
	for _, out := range def.Outputs {
		if _, err := definition.ExpandPath(out.Path, def.PathValues(form, runID)); err != nil {
			return err
		}
	}
	return nil
}
