package output

import (
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas/plain"
)

// Unlisted returns an error if an inventory found parts that no manifest lists. If a run added
// parts beside them, readers that find parts by a glob could see rows twice. path is the
// dataset's address.
func Unlisted(def *definition.Definition, path string, i load.Inventory) error {
	if len(i.Unlisted) == 0 {
		return nil
	}
	return &definition.Fault{
		Code: 73,
		Text: fmt.Sprintf("%s contains %s that no manifest lists, and a run does not write beside such files: %s",
			path, plain.Plural(len(i.Unlisted), "part"), plain.Few(load.NamesOf(i.Unlisted), mostNames)),
		Cure: fmt.Sprintf("if _manifest.json was lost, put it back; if nobody needs these files, remove them with `%s`; or replace the whole dataset with `%s`, without results that the service has deleted", def.Command("clean", "--unlisted"), def.Command("run", "--full")),
	}
}

// mostNames is how many parts an error names at most.
const mostNames = 100
