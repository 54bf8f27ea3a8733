package output

import (
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// Unlisted returns an error if an inventory found parts that the dataset's manifest m, nil for
// none, does not list. If a run added parts beside them, readers that find parts by a glob could
// see rows twice. path is the dataset's address.
func Unlisted(def *definition.Definition, path string, m *load.Manifest, i load.Inventory) error {
	if len(i.Unlisted) == 0 {
		return nil
	}
	what, cure := "that no manifest lists", fmt.Sprintf("if nobody needs these files, remove them with `%s`; or replace the whole dataset with", def.Command("clean", "--unlisted"))
	if m == nil {
		what, cure = "but no "+load.ManifestName, "restore the manifest, or replace all parts with"
	}
	return &definition.Fault{
		Code: 73,
		Text: fmt.Sprintf("%s contains %s %s, and a run does not write beside such files: %s",
			path, plain.Plural(len(i.Unlisted), "part"), what, plain.Few(load.NamesOf(i.Unlisted), mostNames)),
		Cure: fmt.Sprintf("%s `%s`, without results that the service has deleted", cure, def.Command("run", "--full")),
	}
}

// mostNames is how many parts an error names at most.
const mostNames = 3
