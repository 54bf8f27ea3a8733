package definition

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas/plain"
)

// PathValues are what replaces the placeholders in an output's path.
type PathValues struct {
	Form     string // replaces {form}: the form's directory
	Pipeline string // replaces {pipeline}: the definition's name
	Account  string // replaces {account}
	RunID    string // replaces {run_id}
}

// maxPathName is the most bytes of a name that stands in a path. File systems take 255, and
// formetl adds suffixes to names.
const maxPathName = 200

// placeholders returns the words that may stand in braces in an output's path.
func placeholders() []string { return []string{"form", "pipeline", "account", "run_id"} }

// ExpandPath replaces {form}, {pipeline}, {account} and {run_id} in an output's
// path. Some values come from the service, so a value that could lead out of its place in the
// path gives a *Fault. Only the values of placeholders that occur in the path are checked.
func ExpandPath(template string, v PathValues) (string, error) {
	values := map[string]string{"form": v.Form, "pipeline": v.Pipeline, "account": v.Account, "run_id": v.RunID}
	var pairs []string
	for _, p := range placeholders() {
		if !strings.Contains(template, "{"+p+"}") {
			continue
		}
		if _, err := pathName(p)(values[p]); err != nil {
			return "", err
		}
		pairs = append(pairs, "{"+p+"}", values[p])
	}
	return strings.NewReplacer(pairs...).Replace(template), nil
}

// pathName makes a parser of the names that replace a placeholder in paths. A name that cannot
// be part of a path gives a *Fault: the path could lead elsewhere, or some file systems could not
// create it.
func pathName(placeholder string) func(name string) (string, error) {
	return func(name string) (string, error) {
		reason := noPathName(name)
		if reason == "" {
			return name, nil
		}
		remedy := "use letters, digits, - and _"
		switch placeholder {
		case "form":
			remedy = "leave the form out under forms:, or write paths without {form}"
		case "account":
			remedy = "write the name of the account alone, such as acme"
		}
		return "", &Fault{Code: 78, Text: fmt.Sprintf("the %s %s cannot be used in a path: it %s; %s", placeholder, Quote(name), reason, remedy)}
	}
}

// noPathName says why a name cannot be part of a path, in words that continue "it", such as "is
// empty". It returns "" for a name that can be part of a path.
func noPathName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxPathName:
		return fmt.Sprintf("is longer than %d bytes", maxPathName)
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case strings.HasPrefix(name, "."):
		return "begins with a dot"
	case strings.ContainsAny(name, `/\`):
		return "contains a slash or backslash"
	case strings.ContainsRune(name, ':'):
		return "contains a colon"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a space"
	case strings.HasSuffix(name, "."):
		return "ends with a dot"
	case strings.ContainsFunc(name, plain.Unsafe):
		return "contains a control character, or one that changes the direction of text"
	}
	return ""
}

var (
	// shellWord is what shells replace in a path: a home folder, a variable, or a command's output.
	shellWord = regexp.MustCompile("^~[^/]*|\\$\\{?[A-Za-z_][A-Za-z0-9_]*\\}?|^%[A-Za-z_]+%|\\$\\(|`")
	// schemeLike matches the beginning of an address, such as https:/ or s3:. One letter before a
	// colon is a drive of Windows, not a scheme.
	schemeLike = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9+.-]+:/|[sS]3[an]?:)`)
)

// CheckLocal returns an error for a local path that holds what only a shell replaces, such as ~ or
// $HOME, and for a path that looks like an address. The error says what to write instead.
func CheckLocal(path string) error {
	if word := shellWord.FindString(path); word != "" {
		return fmt.Errorf("%s is not replaced here: only a shell does that, and not within quotes or after =; write the path in full, or in a definition ${env:NAME}", word)
	}
	if begin := schemeLike.FindString(path); begin != "" {
		return fmt.Errorf("a path that begins with %s is not a local path; write a local path, or s3://bucket/path for outputs, uploaded files and the state", begin)
	}
	return nil
}

// OnS3 tells whether a path is an address of S3.
func OnS3(path string) bool { return strings.HasPrefix(path, "s3://") }

// SplitPath divides a path or an address into its folder and its last name: s3://bucket/a/b into
// s3://bucket/a and b.
func SplitPath(p string) (root, name string) {
	if strings.Contains(p, "://") { // filepath.Dir would make one slash of the two after the scheme
		i := strings.LastIndexByte(p, '/')
		return p[:i], p[i+1:]
	}
	return filepath.Dir(p), filepath.Base(p)
}

// CodebookPlace is where the codebook of an output lies: beside the output's file or beside its
// dataset's folder, never in that folder.
type CodebookPlace struct {
	Root string // folder or address in which the codebook's files lie
	stem string // what the names of the codebook's files begin with
}

// Schema is the name, relative to Root, of the codebook's JSON file, which programs read.
func (p CodebookPlace) Schema() string { return p.stem + ".schema.json" }

// Table is the name, relative to Root, of the codebook's CSV file, which people read.
func (p CodebookPlace) Table() string { return p.stem + ".codebook.csv" }

// Paths returns the full paths or addresses of the codebook's files: Schema, then Table.
func (p CodebookPlace) Paths() []string {
	base := strings.TrimSuffix(p.Root, "/") + "/"
	return []string{base + p.Schema(), base + p.Table()}
}

// CodebookPlaceOf returns where the codebook of an output lies. expanded is the output's path
// with its placeholders replaced. Outputs whose paths differ only in the extensions of format and
// compression share a codebook. CodebookPlaceOf returns false if the output has no codebook: it
// is standard output, its codebook is turned off, or nothing can lie beside its dataset, because
// that is a whole bucket or the root folder.
func CodebookPlaceOf(out Output, expanded string, formats []load.Format) (CodebookPlace, bool) {
	if out.NoCodebook || out.Path == StdoutPath {
		return CodebookPlace{}, false
	}
	whole := strings.TrimRight(expanded, "/")
	scheme := schemeShape.FindString(whole)
	if whole == "" || scheme != "" && !strings.Contains(whole[len(scheme):], "/") {
		return CodebookPlace{}, false
	}
	root, name := SplitPath(whole)
	if !out.Dataset() {
		if stem, _, _ := splitName(name, formats); stem != "" {
			name = stem
		}
	}
	return CodebookPlace{Root: root, stem: name}, true
}
