package output

import (
	"context"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// Tables are the formats and destinations that the program is built with.
// Nothing registers itself: the command line fills them in.
type Tables struct {
	Formats []load.Format
	// Open gives the destination at root: a folder, or a prefix with a scheme
	// such as s3://bucket/lake.
	Open func(ctx context.Context, root string, o definition.Output) (load.Destination, error)
}

func (t Tables) format(name string) (load.Format, bool) {
	for _, f := range t.Formats {
		if f.Name == name {
			return f, true
		}
	}
	return load.Format{}, false
}
