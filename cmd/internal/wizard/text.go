package wizard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/formetl/formetl/schemas/plain"
)

// definitionText is the definition that the answers give. Where an answer is still to come, an
// example stands in its place. schema is the path of the schema file, "" for none.
func definitionText(s *Session, schema string) string {
	w := &lines{}
	w.head(s)
	w.add("version: 1", "")
	w.add("name: "+scalar(pipeline(s)), "stands in manifests and in the state folder: keep it")
	w.source(s)
	w.forms(s.values("form"))
	w.add("names: "+scalar(s.value("names")), "how columns are called that no schema names: label or id")
	if schema != "" {
		w.add("schema: "+scalar(schema), "the columns with their types and rules")
	}
	if mode := cmp.Or(s.value("mode"), full); mode == full {
		w.add("# extract:", "")
		w.add("#   from: 2026-01-01", "the first day; without it, everything is read")
	} else {
		w.add("extract:", "")
		w.add("  mode: "+scalar(mode), "each run goes on where the last one ended")
		w.add("  # from: 2026-01-01", "the first day; without it, everything is read")
	}
	w.add("load:", "several outputs are written from one reading")
	for _, out := range s.outputs {
		w.output(out)
	}
	w.output(s.output())
	return w.String()
}

// pipeline is the pipeline's name, which is that of the file.
func pipeline(s *Session) string {
	base := filepath.Base(s.value("output"))
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// lines writes a definition.
type lines struct{ strings.Builder }

// commentColumn is where comments begin behind short lines.
const commentColumn = 40

func (w *lines) add(line, comment string) {
	if comment != "" {
		line = fmt.Sprintf("%-*s # %s", commentColumn-1, line, comment)
	}
	w.WriteString(line + "\n")
}

func (w *lines) head(s *Session) {
	name := filepath.Base(s.value("output"))
	what := "the results of form " + singleForm(s)
	if singleForm(s) == "" {
		what = "the results of several forms"
	}
	fmt.Fprintf(w, `# yaml-language-server: $schema=./%s
#
# Takes %s to files. formetl init wrote this; it is yours to edit.
#
#   formetl validate %[3]s    checks this file, without the network
#   formetl plan %[3]s        what a run would read, by count requests only
#   formetl run %[3]s
#
# formetl help definitions tells of every key.
`, editorSchema, plain.Line(what), plain.Line(name))
}

func (w *lines) source(s *Session) {
	w.add("source:", "")
	w.add("  base_url: "+scalar(cmp.Or(s.value("base-url"), "https://fs1.example.com")), "")
	if s.api != "" {
		w.add("  api: "+string(s.api), "the generation of the service")
	}
	w.add("  account: "+scalar(cmp.Or(s.value("account"), "acme")), "")
	w.add("  api_key: "+scalar(s.value("api-key-reference")), "where the key is, never the key itself")
	w.add("  timezone: "+scalar(s.value("timezone")), "the account's zone: dates are its wall clock")
	if s.flags.AllowHTTP {
		w.add("  allow_http: true", "the key travels unprotected")
	}
	w.add("  # requests: {per_minute: 50}", "a budget for all runs of the account")
}

func (w *lines) forms(forms []string) {
	if len(forms) == 0 {
		forms = []string{"form"}
	}
	escaped := make([]string, len(forms)) // a form's name is no reference
	for i, form := range forms {
		escaped[i] = strings.ReplaceAll(form, "${", "$${")
	}
	if len(forms) == 1 {
		w.add("forms: ["+flowScalar(escaped[0])+"]", "")
		return
	}
	w.add("forms:", "")
	for _, form := range escaped {
		w.add("  - "+scalar(form), "")
	}
}

func (w *lines) output(out map[string]string) {
	path := out["path"]
	about := "one file for each form, replaced whole"
	if strings.HasSuffix(path, "/") {
		about = "ends with a slash: a dataset of parts"
	}
	w.add("  - path: "+scalar(path), about)
	if format := out["format"]; format != "" {
		w.add("    format: "+scalar(format), "")
	}
	if partition := out["partition"]; partition != "" {
		w.add("    partition: "+scalar(partition), "folders of the dataset")
	}
	endpoint, region := out["s3-endpoint"], out["s3-region"]
	if endpoint == "" && region == "" {
		return
	}
	w.add("    s3:", "credentials come from the environment")
	if endpoint != "" {
		w.add("      endpoint: "+scalar(endpoint), "")
		w.add("      path_style: true", "most servers other than AWS need it")
	}
	if region != "" {
		w.add("      region: "+scalar(region), "")
	}
}

var (
	plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./{}$+@-]*$`)
	plainText = regexp.MustCompile(`^[A-Za-z$/][A-Za-z0-9_./:{}$+@ -]*$`)
)

// scalar spells a text so that every YAML reader takes it as text, where it is the whole
// value of a key or an entry on a line of its own.
func scalar(text string) string {
	if plainText.MatchString(text) && !strings.Contains(text, ": ") && !strings.HasSuffix(text, ":") && strings.TrimSpace(text) == text && !isReserved(text) {
		return text
	}
	return quoted(text)
}

// flowScalar is scalar between [ and ].
func flowScalar(text string) string {
	if plainWord.MatchString(text) && !strings.ContainsAny(text, "{}") && !isReserved(text) {
		return text
	}
	return quoted(text)
}

// isReserved tells whether some YAML reader takes a word for something else than text.
func isReserved(word string) bool {
	switch strings.ToLower(word) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}

// quoted is a text in double quotes, whose escapes are those of JSON.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(string(plain.JSON(b.Bytes())), "\n")
}
