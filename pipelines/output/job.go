package output

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
)

// Job is what the outputs of a form's run have in common.
type Job struct {
	Def      *definition.Definition
	Form     string
	RunID    string
	Full     bool // everything is replaced
	Tables   Tables
	Stdout   io.Writer
	Now      func() time.Time
	Log      *slog.Logger
	At       func(point string)
	Encoders reading.Slots        // of the objects that are encoded at once
	Requests func() load.Requests // what the form has cost so far
	Drift    func(what string)    // notes a change of the form for the report
}

// The points of a run that Job.At is told of, besides the steps of its commits.
const (
	PointSnapshot = "snapshot" // rows, schema and statistics are final, and nothing is encoded
	PointStaged   = "staged"   // an object is written, and not prepared
	PointPrepared = "prepared" // an object is prepared, and no commit is recorded
	PointCodebook = "codebook" // the outputs are committed, and their codebooks are about to be written
)

// Report says what one output holds now.
type Report struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	// Explode is the source of the list whose elements are the rows of a child
	// output, "" for others.
	Explode string `json:"explode,omitempty"`
	Rows    int64  `json:"rows"`
	Parts   int    `json:"parts"` // data objects; of a dataset those of the whole dataset
	Bytes   int64  `json:"bytes"` // of the data objects
	// Watermark is the time up to which a dataset's results are complete; zero
	// where no later run begins there.
	Watermark load.WallTime `json:"watermark,omitzero"`
	// Warnings tell what a spreadsheet will not show as it is in the output.
	Warnings []string `json:"warnings,omitempty"`
	// CompanionsError is why the codebook beside the output could not be
	// written; the data are whole without it.
	CompanionsError string `json:"companions_error,omitempty"`
	Error           string `json:"error,omitempty"`
}

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
