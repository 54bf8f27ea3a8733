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
		Text: fmt.Sprintf("%s holds %s that no manifest lists: %s; nothing is written beside them. `%s` replaces the whole dataset and removes them, `%s` removes them alone",
			path, countOf(len(i.Unlisted)), plain.Few(load.NamesOf(i.Unlisted), mostNames), def.Command("run", "--full"), def.Command("clean", "--unlisted")),
		Cure: "look at these parts; then replace the dataset with `formetl run DEFINITION --full`, or remove them with `formetl clean DEFINITION --unlisted`",
	}
}

func countOf(parts int) string {
	if parts == 1 {
		return "1 part"
	}
	return fmt.Sprintf("%d parts", parts)
}

// mostNames is how many parts an error names at most.
const mostNames = 100
