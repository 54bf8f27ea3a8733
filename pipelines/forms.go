package pipelines

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
