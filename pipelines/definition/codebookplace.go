package definition

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

// CodebookPlace is where the codebook of an output lies: beside its file or its
// dataset's folder, never in that.
type CodebookPlace struct {
	Root string // of the destination
	stem string // what its names begin with
}

func (p CodebookPlace) Schema() string { return p.stem + codebookSchema }
func (p CodebookPlace) Table() string  { return p.stem + codebookTable }

// Paths are those of the codebook's files.
func (p CodebookPlace) Paths() []string {
	base := p.Root + "/"
	if strings.HasSuffix(p.Root, "/") {
		base = p.Root
	}
	return []string{base + p.Schema(), base + p.Table()}
}

// CodebookPlaceOf is where the codebook of an output at a path goes: outputs
// that differ in format and compression alone share one. false where it has
// none: on standard output, where it is turned off, and where nothing can lie
// beside the dataset.
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
		name = withoutExtensions(name, formats)
	}
	return CodebookPlace{Root: root, stem: name}, true
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
