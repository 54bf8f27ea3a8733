package account

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

// FoundForms are forms that are known without asking the service.
type FoundForms struct {
	Forms []string
	// Patterns are the definition's globs: there may be forms that match and of
	// which nothing was found.
	Patterns []string
	// Unlisted are the paths of outputs at which forms cannot be looked for.
	Unlisted []string
}

// FindForms gives the forms that were chosen or are named. Where the definition
// has globs, it gives those of which something lies at the outputs or in the
// state folder. The error is a *NoFormsError where names are given and none is left.
func FindForms(ctx context.Context, def *definition.Definition, o Options) (f FoundForms, err error) {
	if f.Forms, f.Patterns = NamedForms(def, o); len(f.Patterns) == 0 {
		return f, someForms(def, o, f.Forms)
	}
	for _, out := range def.Outputs {
		if !out.Lasting() {
			continue
		}
		ends := []string{load.FileManifestName("")}
		if out.Dataset() {
			ends = []string{load.ManifestName, load.ControlFolder + "/" + load.IntentName}
		}
		found, err := formsAt(ctx, def, o, out, ends)
		if err != nil {
			return f, err
		}
		if found == nil {
			f.Unlisted = append(f.Unlisted, out.Path)
		}
		f.add(def, found...)
	}
	for _, l := range checkpoint.LeftIn(ctx, def.State, func(h checkpoint.Header) bool { return h.Is(def.Name, h.Form, def.File) }) {
		f.add(def, l.Form)
	}
	slices.Sort(f.Forms)
	return f, nil
}

// AddUnderWay adds the forms that a run of the definition reads now, also if it is the first
// one, which has left nothing at the outputs yet. A run has a lease of each output, and a
// checkpoint once it has a plan.
func (f *FoundForms) AddUnderWay(ctx context.Context, def *definition.Definition, o Options) error {
	if len(f.Patterns) == 0 {
		return nil
	}
	for _, h := range checkpoint.HeldIn(ctx, def.State) {
		if h.Is(def.Name, h.Form, def.File) {
			f.add(def, h.Form)
		}
	}
	for _, out := range def.Outputs {
		if !out.Lasting() {
			continue
		}
		held := heldFiles
		if out.Dataset() {
			held = func(ctx context.Context, def *definition.Definition, o Options, out definition.Output) ([]string, error) {
				return formsAt(ctx, def, o, out, []string{load.ControlFolder + "/" + load.LeaseName})
			}
		}
		found, err := held(ctx, def, o, out)
		if err != nil {
			return err
		}
		f.add(def, found...)
	}
	slices.Sort(f.Forms)
	return nil
}

// heldFiles gives the forms whose file a run has a lease of, if all files lie in one folder.
func heldFiles(ctx context.Context, def *definition.Definition, o Options, out definition.Output) (forms []string, err error) {
	template, err := markedPath(def, o, out)
	if err != nil {
		return nil, err
	}
	root, name := definition.SplitPath(template)
	if strings.Contains(root, formMark) {
		return nil, nil
	}
	dest, err := o.Tables.Open(ctx, root, out)
	if err != nil {
		return nil, err
	}
	sweeper, ok := dest.(load.Sweeper)
	if !ok {
		return nil, nil
	}
	holders, err := sweeper.Holders(ctx)
	if err != nil {
		return nil, err
	}
	pattern, err := formPattern(name, []string{""})
	if err != nil {
		return nil, err
	}
	scopes := make([]string, len(holders))
	for i, h := range holders {
		scopes[i] = h.Scope
	}
	return formsIn(pattern, scopes), nil
}

// add adds the forms that the definition wants and that are not known yet.
func (f *FoundForms) add(def *definition.Definition, forms ...string) {
	for _, form := range forms {
		if def.WantsForm(form) && !slices.Contains(f.Forms, form) {
			f.Forms = append(f.Forms, form)
		}
	}
}

// formsAt gives the forms of which one of some objects lies at an output. ends are the ends
// of their names. It is nil where these cannot be listed.
func formsAt(ctx context.Context, def *definition.Definition, o Options, out definition.Output, ends []string) ([]string, error) {
	template, err := markedPath(def, o, out)
	if err != nil {
		return nil, err
	}
	var names []string
	switch {
	case out.Database != nil:
		names, err = listTables(ctx, o, out, template, ends)
	case strings.Contains(template, "://"):
		names, err = listRemote(ctx, o, out, template)
	default:
		names, err = listLocal(template, ends)
	}
	if err != nil || names == nil {
		return nil, err
	}
	pattern, err := formPattern(template, ends)
	if err != nil {
		return nil, err
	}
	return formsIn(pattern, names), nil
}

// markedPath is the path of an output with formMark in place of the form.
func markedPath(def *definition.Definition, o Options, out definition.Output) (string, error) {
	return definition.ExpandPath(strings.ReplaceAll(out.Path, "{form}", formMark), def.PathValues("", o.RunID))
}

// formPattern matches the names of a template with one of the ends, whatever the form is.
func formPattern(template string, ends []string) (*regexp.Regexp, error) {
	quoted := make([]string, len(ends))
	for i, end := range ends {
		quoted[i] = regexp.QuoteMeta(end)
	}
	return regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(template), formMark, "([^/]+)") + "(?:" + strings.Join(quoted, "|") + ")$")
}

// formsIn gives the forms of the names that match a pattern of formPattern.
func formsIn(pattern *regexp.Regexp, names []string) []string {
	forms := []string{}
	for _, name := range names {
		m := pattern.FindStringSubmatch(filepath.ToSlash(name))
		if len(m) > 1 && len(slices.Compact(m[1:])) == 1 {
			forms = append(forms, m[1])
		}
	}
	return forms
}

// formMark stands for the form in a path. No path holds it otherwise.
const formMark = "\x00"

// listLocal returns the files that lie where a template with one of the ends points,
// whatever the form is.
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

// listTables gives the objects with one of these ends at the tables beside that of a template.
// It is nil where the database cannot tell.
func listTables(ctx context.Context, o Options, out definition.Output, template string, ends []string) ([]string, error) {
	dest, err := o.Tables.Open(ctx, strings.ReplaceAll(template, formMark, "form"), out)
	if err != nil {
		return nil, err
	}
	catalog, ok := dest.(load.Catalog)
	if !ok {
		return nil, nil
	}
	return catalog.Beside(ctx, ends)
}

// listRemote gives the objects below the fixed beginning of a template. It is nil
// where the template has no such beginning.
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
