package pipelines

import (
	"context"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// forms are the forms that are looked at: those that were chosen or are named,
// and where the definition has globs those of which something lies at the
// outputs or in the state folder.
func (r *StateReport) forms(ctx context.Context, def *definition.Definition, o Options) ([]string, error) {
	forms, patterns := namedForms(def, o)
	if r.Patterns = patterns; len(patterns) == 0 {
		if len(forms) == 0 {
			return nil, &NoFormsError{Patterns: def.Forms, Chosen: o.Forms}
		}
		return forms, nil
	}
	for _, out := range def.Outputs {
		if out.Path == definition.StdoutPath || strings.Contains(out.Path, "{run_id}") {
			continue
		}
		found, err := formsAt(ctx, def, o, out)
		if err != nil {
			return nil, err
		}
		if found == nil {
			r.Unlisted = append(r.Unlisted, out.Path)
		}
		for _, form := range found {
			if def.WantsForm(form) && !slices.Contains(forms, form) {
				forms = append(forms, form)
			}
		}
	}
	wanted := func(h checkpoint.Header) bool { return h.Is(def.Name, h.Form, def.File) && def.WantsForm(h.Form) }
	for _, l := range checkpoint.LeftIn(ctx, def.State, wanted) {
		if !slices.Contains(forms, l.Form) {
			forms = append(forms, l.Form)
		}
	}
	slices.Sort(forms)
	return forms, nil
}

// formsAt are the forms of which something lies at an output, by the names of
// manifests and of recorded commits; nil where that cannot be listed.
func formsAt(ctx context.Context, def *definition.Definition, o Options, out definition.Output) ([]string, error) {
	template, err := definition.ExpandPath(strings.ReplaceAll(out.Path, "{form}", formMark), def.PathValues("", o.RunID))
	if err != nil {
		return nil, err
	}
	ends := []string{load.FileManifestName("")}
	if out.Dataset() {
		ends = []string{load.ManifestName, load.ControlFolder + "/" + load.IntentName}
	}
	var names []string
	if strings.Contains(template, "://") {
		names, err = listRemote(ctx, o, out, template)
	} else {
		names, err = listLocal(template, ends)
	}
	if err != nil || names == nil {
		return nil, err
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(template), formMark, "([^/]+)")
	for i, end := range ends {
		ends[i] = regexp.QuoteMeta(end)
	}
	pattern, err := regexp.Compile("^" + quoted + "(?:" + strings.Join(ends, "|") + ")$")
	if err != nil {
		return nil, err
	}
	forms := []string{}
	for _, name := range names {
		m := pattern.FindStringSubmatch(filepath.ToSlash(name))
		if len(m) > 1 && len(slices.Compact(m[1:])) == 1 {
			forms = append(forms, m[1])
		}
	}
	return forms, nil
}

// formMark stands for the form in a path: no path holds it.
const formMark = "\x00"

// listLocal gives the files that a template's ends may be.
func listLocal(template string, ends []string) ([]string, error) {
	escaped := regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(template, `\$0`)
	names := []string{}
	for _, end := range ends {
		found, err := filepath.Glob(strings.ReplaceAll(escaped, formMark, "*") + end)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	return names, nil
}

// listRemote gives the objects below the fixed beginning of a template; nil
// where it has none.
func listRemote(ctx context.Context, o Options, out definition.Output, template string) ([]string, error) {
	scheme, rest, _ := strings.Cut(template, "://")
	fixed, _, _ := strings.Cut(rest, formMark)
	root, folder := path.Split(path.Dir(fixed + "-"))
	if root == "" {
		return nil, nil
	}
	root = scheme + "://" + strings.TrimSuffix(root, "/")
	dest, err := o.Tables.Open(ctx, root, out)
	if err != nil {
		return nil, err
	}
	found, err := dest.List(ctx, folder+"/")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found))
	for i, o := range found {
		names[i] = root + "/" + o.Name
	}
	return names, nil
}
