package definition

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const ownColumns = "version: 1\ncolumns:\n  - {name: id, from: result_id, type: int64}\n"

// TestFor: each form has the schema and the lower bound of the most exact entry that gives it one,
// else those of the definition, and the child outputs of its own schema.
func TestFor(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s", "a.yaml"), ownColumns+"  - {name: colours, from: \"item:2\", type: \"list<string>\", explode: true}\n")
	write(t, filepath.Join(dir, "s", "b.yaml"), ownColumns)
	write(t, filepath.Join(dir, "s", "bad.yaml"), strings.Replace(ownColumns, "int64", "int46", 1))
	write(t, filepath.Join(dir, "s", "lists.yaml"), ownColumns+"  - {name: clash, from: \"item:2\", type: \"list<string>\", explode: true}\n")
	write(t, filepath.Join(dir, "sub", "s.yaml"), ownColumns)
	const entries = "[a, b, 's-*', '*', {name: 't*', schema: s/b.yaml, from: 2026-01-02}, {name: 'ti*', from: 2026-01-03}, {name: tin, schema: s/a.yaml}]"
	for _, c := range []struct{ schema, forms, form, name, from, children, problem string }{
		{"s/{form}.yaml", entries, "a", "a", "", "out/a__colours.csv", ""},
		{"s/{form}.yaml", entries, "b", "b", "", "", ""},
		{"s/{form}.yaml", entries, "s-1", "", "", "", "of form s-1 does not exist; create it with `formetl schema infer p.yaml --form s-1 -o " + dir + "/s/s-1.yaml`"},
		{"s/{form}.yaml", entries, "../sub/s", "", "", "", `the form "../sub/s" cannot be used in a path`},
		{"s/{form}.yaml", entries, "bad", "", "", "", "s/bad.yaml:3:39: columns[0].type: "},
		{"s/{form}.yaml", entries, "tan", "b", "2026-01-02", "", ""},
		{"s/{form}.yaml", entries, "ticket", "b", "2026-01-03", "", ""},
		{"s/{form}.yaml", entries, "tin", "a", "2026-01-03", "out/tin__colours.csv", ""},
		{"s/a.yaml", "[a, {name: b, schema: s/b.yaml}]", "a", "a", "", "out/a__colours.csv", ""},
		{"s/a.yaml", "[a, {name: b, schema: s/b.yaml}]", "b", "b", "", "", ""},
		{"s/b.yaml", "[{name: 'ab*', schema: s/a.yaml}, {name: '*cd', schema: s/b.yaml}]", "abcd", "", "", "", `p.yaml:7:64: forms[1].schema: form abcd: "*cd" and "ab*" on line 7 both match the form, so it is not clear which of the two counts`},
		{"s/b.yaml", "[{name: b, schema: s/lists.yaml}]", "b", "", "", "", "p.yaml:10:11: load[0].path: form b: this output and load[1].path on line 11 would overwrite each other"},
	} {
		t.Run(c.form+" of "+c.schema, func(t *testing.T) {
			t.Chdir(dir)
			text := strings.Replace(minimal, "forms: [form1]", "forms: "+c.forms+"\nschema: "+c.schema, 1)
			text = strings.Replace(text, "path: out.csv", "path: 'out/{form}.csv'\n  - path: 'out/{form}__clash.csv'", 1)
			d, err := Parse("p.yaml", []byte(text), testOptions())
			if err != nil {
				t.Fatal(err)
			}
			own, err := d.For(c.form)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("%v lacks %q", err, c.problem)
				}
				if code, ok := err.(interface{ ExitCode() int }); !ok || code.ExitCode() != 78 {
					t.Errorf("%T has another code than 78", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			from, children := "", ""
			if !own.Extract.From.IsZero() {
				from = own.Extract.From.Format("2006-01-02")
			}
			if len(own.Outputs) > 2 {
				children, _ = ExpandPath(own.Outputs[2].Path, own.PathValues(c.form, ""))
				children, _ = filepath.Rel(dir, children)
			}
			if own.Schema.Name != c.name || from != c.from || filepath.ToSlash(children) != c.children {
				t.Errorf("the schema %s, from %q, children %q", own.Schema.Name, from, children)
			}
			if several := !slices.Equal(d.Forms, []string{c.form}); several != strings.HasSuffix(own.Command("run"), " --form "+c.form) {
				t.Errorf("the command is %s", own.Command("run"))
			}
			if again, err := own.For("another"); again.Schema != own.Schema || err != nil {
				t.Error("the definition of a form has forms")
			}
			if _, err := d.Fingerprint(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKnownForms: those that the definition names, and those of its globs whose schema file is there.
func TestKnownForms(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"s/x-1.yaml", "s/x-2.yaml", "s/y.yaml", "s/a.yaml"} {
		write(t, filepath.Join(dir, filepath.FromSlash(file)), ownColumns)
	}
	text := strings.Replace(minimal, "forms: [form1]", "forms: [a, gone, 'x-*']\nexclude: [x-2]\nschema: s/{form}.yaml", 1)
	d, err := Parse(filepath.Join(dir, "p.yaml"), []byte(strings.Replace(text, "out.csv", "'{form}.csv'", 1)), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	if known := d.KnownForms(); !slices.Equal(known, []string{"a", "gone", "x-1"}) {
		t.Errorf("%v are known", known)
	}
	if _, err := d.CheckForms(d.KnownForms()); err == nil || strings.Count(err.Error(), "\n") != 0 || !strings.Contains(err.Error(), "form gone does not exist") {
		t.Errorf("%v", err)
	}
}

// TestWarnings: what most likely is a mistake, though runs go by it.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s", "form2.yaml"), ownColumns)
	write(t, filepath.Join(dir, "s", "form1.yaml"), ownColumns+"  - {name: mail, from: \"item:1\", type: string, pii: drop}\n")
	const several = "load:\n  - path: '{form}.csv'\n"
	for _, c := range []struct{ old, new, want string }{
		{"forms: [form1]\nload:\n  - path: out.csv\n", "forms: [form1, form2]\nschema: {name: s}\n" + several, "8:1: schema: several forms share this schema"},
		{"forms: [form1]\nload:\n  - path: out.csv\n", "forms: ['*']\ncolumns: [{name: id, from: result_id, type: int64}]\n" + several, "8:1: columns: several forms share this schema"},
		{"forms: [form1]\nload:\n  - path: out.csv\n", "forms: [form1, {name: form2, schema: s/form2.yaml}]\nschema: {name: s}\n" + several, ""},
		{"forms: [form1]\n", "forms: [form1]\nschema: s/form1.yaml\n", "8:9: schema: some columns have a pii rule, but items that are added to the form later are written without one"},
		{"forms: [form1]\n", "forms: [form1]\nschema: s/{form}.yaml\n", "8:9: schema: form form1: some columns have a pii rule"},
		{"forms: [form1]\n", "forms: [form1]\nschema: {unknown: ignore, columns: [{name: mail, from: 'item:1', type: string, pii: redact}]}\n", ""},
		{"forms: [form1]\n", "forms: [form1]\nfiles: {path: f/}\nschema: {unknown: ignore, columns: [{name: id, from: result_id, type: int64}]}\n", "9:1: schema: no column tells when a result last changed"},
		{"forms: [form1]\n", "forms: [form1]\nfiles: {path: f/}\nschema: {name: s, columns: [{name: id, from: result_id, type: int64}]}\n", ""},
		{"load:\n  - path: out.csv\n", "extract: {mode: incremental, to: 2026-01-01}\nload: [{path: lake/, format: csv}]\n", "8:34: extract.to: this time has passed"},
		{"load:\n  - path: out.csv\n", "extract: {mode: incremental, to: -7d}\nload: [{path: lake/, format: csv}]\n", ""},
		{"load:", "extract: {to: 2026-01-01}\nload:", ""},
		{"path: out.csv", "{path: out, format: csv}", "9:12: load[0].path: other programs may not recognize the file, because names of csv files end with .csv; end the path with .csv"},
		{"path: out.csv", "{path: out.csv.old, format: csv}", "9:12: load[0].path: other programs may not recognize the file"},
		{"path: out.csv", "{path: out.txt, format: csv}", ""},
		{"path: out.csv", "{path: lake/, format: csv}", ""},
	} {
		d, err := Parse(filepath.Join(dir, "p.yaml"), []byte(strings.Replace(minimal, c.old, c.new, 1)), testOptions())
		if err != nil {
			t.Errorf("%s: %v", c.new, err)
			continue
		}
		warnings, err := d.CheckForms(d.KnownForms())
		var texts []string
		for _, p := range append(d.Warnings, warnings...) {
			texts = append(texts, p.String())
		}
		if got := strings.Join(texts, "\n"); err != nil || !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || len(texts) > 1 {
			t.Errorf("%s: %q, %v", c.new, got, err)
		}
	}
}
