package cli

import (
	"context"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/arrowout"
	"github.com/formetl/formetl/load/csvout"
	"github.com/formetl/formetl/load/jsonout"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/load/parquetout"
	"github.com/formetl/formetl/pipelines"
)

// tables are the formats and destinations that formetl is built with.
func tables() pipelines.Tables {
	return pipelines.Tables{
		Formats: []load.Format{csvout.Format(), jsonout.NDJSON(), jsonout.JSON(), parquetout.Format(), arrowout.Format()},
		Open:    open,
	}
}

func open(_ context.Context, root string, _ pipelines.Output) (load.Destination, error) {
	if scheme, _, ok := strings.Cut(root, "://"); ok {
		return nil, &pipelines.UnsupportedError{What: "the destination " + scheme + "://", Remedy: "write to a local path"}
	}
	return local.New(root)
}
