package definition

import (
	"path"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
)

// CodebookPlace is where the codebook of an output lies: beside the output's file
// or its dataset's folder, never in that folder.
type CodebookPlace struct {
	Root string // of the destination
	stem string // what the names of its files begin with
}

// Schema is the name, relative to Root, of the JSON file that programs read.
func (p CodebookPlace) Schema() string { return p.stem + ".schema.json" }

// Table is the name, relative to Root, of the CSV file that people read.
func (p CodebookPlace) Table() string { return p.stem + ".codebook.csv" }

// Paths are the addresses of the codebook's files: the schema, then the table.
func (p CodebookPlace) Paths() []string {
	base := strings.TrimSuffix(p.Root, "/") + "/"
	return []string{base + p.Schema(), base + p.Table()}
}

// CodebookPlaceOf is where the codebook of an output at a path goes. expanded is
// the output's path with its placeholders replaced. Outputs that differ in format
// and compression alone have the same place. It is false where the output has no
// codebook: on standard output, where codebooks are turned off, and where nothing
// can lie beside the dataset.
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

// withoutExtensions cuts the format's and the codec's extensions off a file's name.
// A name that would be empty then stays as it is.
func withoutExtensions(name string, formats []load.Format) string {
	stem, _ := load.SplitCodec(name)
	ext := path.Ext(stem)
	if slices.ContainsFunc(formats, func(f load.Format) bool { return strings.EqualFold(ext, f.Extension) }) {
		stem = strings.TrimSuffix(stem, ext)
	}
	if stem == "" {
		return name
	}
	return stem
}
