package pipelines

import (
	"path"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
)

// The ends of a codebook's names: for programs and for people.
const (
	codebookSchema = ".schema.json"
	codebookTable  = ".codebook.csv"
)

// codebookPlace is where the codebook of an output lies: beside its file or its
// dataset's folder, never in that.
type codebookPlace struct {
	root string // of the destination
	stem string // what its names begin with
}

func (p codebookPlace) schema() string { return p.stem + codebookSchema }
func (p codebookPlace) table() string  { return p.stem + codebookTable }

// paths are those of the codebook's files.
func (p codebookPlace) paths() []string {
	base := p.root + "/"
	if strings.HasSuffix(p.root, "/") {
		base = p.root
	}
	return []string{base + p.schema(), base + p.table()}
}

// codebookPlaceOf is where the codebook of an output at a path goes: outputs
// that differ in format and compression alone share one. false where it has
// none: on standard output, where it is turned off, and where nothing can lie
// beside the dataset.
func codebookPlaceOf(out Output, expanded string, formats []load.Format) (codebookPlace, bool) {
	if out.NoCodebook || out.Path == StdoutPath {
		return codebookPlace{}, false
	}
	whole := strings.TrimRight(expanded, "/")
	scheme := schemeShape.FindString(whole)
	if whole == "" || scheme != "" && !strings.Contains(whole[len(scheme):], "/") {
		return codebookPlace{}, false
	}
	root, name := splitPath(whole)
	if !out.Dataset() {
		name = withoutExtensions(name, formats)
	}
	return codebookPlace{root: root, stem: name}, true
}

// withoutExtensions cuts the format's and the codec's extension off a file's
// name. A name that is nothing else stays.
func withoutExtensions(name string, formats []load.Format) string {
	stem, _ := splitCodec(name)
	ext := path.Ext(stem)
	if slices.ContainsFunc(formats, func(f load.Format) bool { return strings.EqualFold(ext, f.Extension) }) {
		stem = strings.TrimSuffix(stem, ext)
	}
	if stem == "" {
		return name
	}
	return stem
}
