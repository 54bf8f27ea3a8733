package output

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// collectColumns collects the columns in the manifests of earlier runs. This run
// begins with these columns, so that the schema is stable. Columns of single files,
// which are written anew, count only if no dataset has columns. It sets aside
// outputs that the definition no longer fits.
//
// Datasets disagree on their columns where a run --full ended after only some datasets were
// committed. Then this run replaces everything, as that run should have.
func (s *Set) collectColumns(ctx context.Context) error {
	if s.job.Full {
		return nil
	}
	var sets, files []schemas.Column
	var disagree error
	for _, out := range s.live() {
		var columns []schemas.Column
		var err error
		p := out.at()
		if d, ok := out.(continued); ok {
			columns, err = d.fits()
			disagree = cmp.Or(disagree, p.checkColumns(columns, sets))
			sets = schemas.Merge(sets, columns)
		} else if p.resumesColumns() {
			columns, err = ColumnsOf(p.manifest)
			err = p.named(err)
			files = schemas.Merge(files, columns)
		}
		if err == nil {
			continue
		}
		if err := s.setAside(ctx, p, err); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(s.live(), func(out output) bool { return !out.at().out.Exploded() }) {
		return s.failures() // lists are not read without their results
	}
	if disagree != nil {
		s.job.Full = true
		s.job.Log.LogAttrs(ctx, slog.LevelWarn, "a run with --full did not finish, so the outputs have different columns; this run reads all results again and replaces every output",
			slog.String("reason", strings.Replace(brief("", disagree), "this output is left as it is, because ", "", 1)))
		return nil
	}
	if s.Columns = sets; len(sets) == 0 {
		s.Columns = files
	}
	s.fillLists(ctx)
	return nil
}

// fillLists makes the run replace everything if rows of exploded lists are not there, or are left
// from before runs without the list: it is not known of which results.
func (s *Set) fillLists(ctx context.Context) {
	replace := func(why, path string) {
		s.job.Full = true
		s.job.Log.LogAttrs(ctx, slog.LevelWarn, why+"; this run reads all results again and writes all outputs anew", slog.String("path", path))
	}
	results := slices.DeleteFunc(s.datasets(), func(d *dataset) bool { return d.out.Exploded() })
	for _, d := range s.datasets() {
		beside := func(of *dataset) bool { return hasList(of.manifest, d.out.Explode) }
		if d.out.Exploded() && d.manifest != nil && len(results) > 0 && !slices.ContainsFunc(results, beside) {
			replace("the results were last written without this list", d.Path)
		}
	}
	for _, out := range s.live() {
		switch t, ok := out.(*table); {
		case ok && t.lost != "":
			replace("rows are missing in tables of lists", t.lost)
		case ok && t.manifest != nil && t.explodes():
			replace("the new table of a list has to be filled", t.Path)
		}
	}
}

// hasList tells whether the run that wrote a manifest also wrote the list, whose elements or files
// are rows of their own.
func hasList(m *load.Manifest, list schemas.Source) bool {
	written := func(c load.Column) bool { return c.Explode && c.From == list.String() }
	return m != nil && (list.Kind == schemas.FromFile && m.Files || slices.ContainsFunc(m.Schema, written))
}

// resumesColumns tells whether this run starts with the columns that a file
// already has. The file must be of the same form and name columns in the same
// way. The definition must be one that is run repeatedly, not an export.
func (p *place) resumesColumns() bool {
	m, def := p.manifest, p.job.Def
	return m != nil && !p.out.Exploded() && def.File != "" && def.Schema == nil && m.Names == p.job.naming() && m.Form == p.job.Form
}

// Full tells whether the run replaces all results, because it was asked to or because the
// outputs that Open found need it.
func (s *Set) Full() bool { return s.job.Full }

// earlierColumns returns the columns of a dataset's manifest. It returns none for a child
// output, whose columns follow from the main output. It returns an error if the definition no
// longer fits the columns.
func (p *place) earlierColumns() ([]schemas.Column, error) {
	m, schema, naming := p.manifest, p.job.Def.Schema, p.job.naming()
	if m == nil || p.out.Exploded() && schema == nil {
		return nil, nil
	}
	if schema == nil && m.Names != naming {
		return nil, p.changed("what names the columns (names:)", cmp.Or(m.Names, "a schema"), naming, "; columns would get other names")
	}
	if p.out.Exploded() {
		m = elements(m)
	}
	columns, err := ColumnsOf(m)
	if err != nil {
		return nil, p.named(err)
	}
	if schema == nil {
		return columns, nil
	}
	declared := schema.Columns
	if p.out.Exploded() {
		if declared, err = ChildColumns(declared, p.out.Explode); err != nil {
			return nil, err
		}
		declared = slices.Delete(declared, positionAt, positionAt+1)
	}
	if err := p.checkColumns(columns, declared); err != nil {
		return nil, err
	}
	if p.format.Cells && !p.out.Exploded() {
		if err := p.checkLists(m.Schema, schema); err != nil {
			return nil, err
		}
	}
	if err := p.checkRules(m.Schema, schema); err != nil || p.out.Exploded() {
		return nil, err
	}
	return columns, p.keepsColumns(columns, schema)
}

// naming returns what inferred columns are named after, or "" if the definition itself names the
// columns.
func (j *Job) naming() string {
	if j.Def.Schema != nil {
		return ""
	}
	return string(cmp.Or(j.Def.Names, schemas.ByID))
}

// checkColumns returns an error if columns rename or retype a column that the dataset
// has (kept), or use the name of such a column for another source.
func (p *place) checkColumns(kept, columns []schemas.Column) error {
	bySource, byName := make(map[schemas.Source]schemas.Column, len(columns)), make(map[string]schemas.Column, len(columns))
	for _, c := range columns { // sources are unique, and so are names even if case is ignored
		bySource[c.From], byName[strings.ToLower(c.Name)] = c, c
	}
	for _, k := range kept {
		is, same := bySource[k.From]
		other, taken := byName[strings.ToLower(k.Name)]
		switch what := "column " + k.Name; {
		case same && is.Name != k.Name:
			return p.changed("the name of the column from "+k.From.String(), k.Name, is.Name, partsBreak)
		case same && !is.Type.Equal(k.Type):
			return p.changed(what, k.Type.String(), is.Type.String(), partsBreak)
		case taken && other.From != k.From:
			return p.changed(what, "from "+k.From.String(), "from "+other.From.String(), partsBreak)
		}
	}
	return nil
}

// keepsColumns returns an error if a run by the schema would not write a column that the dataset
// has.
func (p *place) keepsColumns(kept []schemas.Column, s *schemas.Schema) error {
	if s.Adds() {
		return nil // every earlier column stays
	}
	for _, k := range kept {
		if s.Find(k.From) < 0 {
			return p.changed("column "+k.Name, "from "+k.From.String(), "left out", "; parts that are read again would lose its values")
		}
	}
	return nil
}

// changed returns the fault of a definition that describes a committed dataset, or one of its
// columns, in another way than before. why says what harm that would do, with "; " before it; it
// may be "".
func (p *place) changed(what, was, is, why string) error {
	return &definition.Fault{
		Code: 78,
		Text: fmt.Sprintf("%s: this output is left as it is, because %s was %s and is %s now%s", p.Path, what, was, is, why),
		Cure: fmt.Sprintf("undo the change, or give the output a new path, or run `%s` (the same for other forms with this error): it reads everything again and replaces the outputs, which then lack results that the service has deleted", p.job.Def.Command("run", "--full")),
	}
}

const partsBreak = "; programs that read the older parts would fail"

// ruleOf returns a column's pii rule as manifests spell it. An hmac rule includes
// the id of the HMAC key, because hashes by different keys cannot be compared.
func ruleOf(c schemas.Column, key schemas.HMACKey) string {
	if c.PII.Kind == schemas.PIIHMAC && !key.IsZero() {
		return hmacRule + "(" + key.ID() + ")"
	}
	return c.PII.String()
}

const hmacRule = "hmac"

// checkRules returns an error if the schema has another pii rule for a
// committed column. Older parts would show what the new rule hides, or hold
// hashes unlike the new ones.
func (p *place) checkRules(committed []load.Column, s *schemas.Schema) error {
	if changed := RuleChanges(committed, s); len(changed) > 0 {
		x := changed[0]
		return p.changed("column "+x.Column, described(x.Was), described(x.Is), "; the values in older parts stay as they were written, unlike new ones")
	}
	return nil
}

// RuleChanges returns the columns of a manifest for which the schema has another pii rule. An hmac
// rule without a key, because no secret was read, equals one with any key.
func RuleChanges(committed []load.Column, s *schemas.Schema) (changes []schemas.Change) {
	for _, was := range committed {
		is, same := "", was.PII == "" || !s.Adds()
		if now, ok := columnFrom(s, was.From); ok {
			is = ruleOf(now, s.HMACKey)
			same = was.PII == is || is == hmacRule && strings.HasPrefix(was.PII, hmacRule+"(")
		}
		if !same {
			changes = append(changes, schemas.Change{Kind: schemas.RuleChanged, From: was.From, Column: was.Name, Key: "pii", Was: was.PII, Is: is, Breaking: true})
		}
	}
	return changes
}

// described returns a pii rule as text for people.
func described(rule string) string {
	if rule == "" {
		return "unprotected"
	}
	return "pii: " + strings.Replace(rule, hmacRule+"(", hmacRule+" by key (", 1)
}

// The manifest of a CSV dataset holds the CSV profile and how lists are shown, because all
// parts of the dataset are read together and must agree in both.

// strictProfile is the default CSV profile. Manifests leave it out.
const strictProfile = "strict"

// profileRule returns a CSV profile as manifests spell it.
func profileRule(profile string) string {
	if profile == strictProfile {
		return ""
	}
	return profile
}

// listRule returns how a column shows lists, as manifests spell it. It returns
// "" for joined lists and for formats that show lists in only one way.
func listRule(c schemas.Column) string {
	if c.ListAs == schemas.ListJoined {
		return ""
	}
	return string(c.ListAs)
}

// checkLists returns an error if the schema shows a list in CSV in another way than the older
// parts, because new parts would have other columns or other text.
func (p *place) checkLists(committed []load.Column, s *schemas.Schema) error {
	for _, was := range committed {
		now, ok := columnFrom(s, was.From)
		if is := listRule(now); ok && is != was.ListAs {
			describe := func(rule string) string { return "list_as: " + cmp.Or(rule, string(schemas.ListJoined)) }
			return p.changed("column "+was.Name, describe(was.ListAs), describe(is), partsBreak)
		}
	}
	return nil
}

// columnFrom returns the schema's column from a source, also that of typed texts which follows from
// their item's column. ok is false if there is none.
func columnFrom(s *schemas.Schema, source string) (c schemas.Column, ok bool) {
	from, err := schemas.ParseSource(source)
	if at := s.Find(from); err == nil && at >= 0 {
		return s.Columns[at], true
	}
	if at := s.Find(from.Item()); err == nil && at >= 0 {
		return s.Columns[at].Typed(""), true
	}
	return c, false
}
