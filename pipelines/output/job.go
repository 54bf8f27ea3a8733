package output

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
)

// Job holds what all outputs of a form's run have in common.
type Job struct {
	Def      *definition.Definition
	Form     string
	RunID    string
	Full     bool // replace all results
	BuiltIn  BuiltIn
	Stdout   io.Writer
	Now      func() time.Time
	Log      *slog.Logger
	At       func(point string)
	Encoders reading.Slots        // limits how many objects are encoded at once
	Requests func() load.Requests // requests sent for the form so far
	Drift    func(what string)    // adds a change of the form to the report
	Guarded  func(column string)  // see load.EncodeOptions.Guarded; called from several goroutines; may be nil
	Files    Files                // what became of uploaded files; nil if they are not stored
}

// Files tells what became of the uploaded files of a run's results.
type Files interface {
	// Rows calls visit with the rows of the files of a window's results, in the order of the
	// results. The schema is that of ChildColumns. A batch is valid only during the call.
	Rows(ctx context.Context, s *reconcile.Snapshot, w *reading.Window, schema *arrow.Schema, visit func(arrow.RecordBatch) error) error
	// Unfetched returns the results with files that the next run is to ask for again.
	Unfetched() idset.Set
}

// These are the points of a run at which Job.At is called, besides the steps of commits.
const (
	PointSnapshot = "snapshot" // rows, schema and statistics are final, and the outputs are about to be staged
	PointStaged   = "staged"   // an object is written, and not yet prepared for its commit
	PointPrepared = "prepared" // an object is prepared, and no commit is recorded yet
	PointLoad     = "load"     // a table of a database is about to be loaded
	PointLoaded   = "loaded"   // the load is committed, but the run has not noted that yet
	PointCodebook = "codebook" // the outputs are committed, and their codebooks are about to be written
)

// Report describes what one output holds now.
type Report struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	// Explode is the source of the list whose elements are the rows of a child
	// output. It is "" for other outputs.
	Explode string `json:"explode,omitempty"`
	Rows    int64  `json:"rows"`
	Parts   int    `json:"parts"`            // number of data objects; in a dataset, of all runs
	Bytes   int64  `json:"bytes"`            // size of the data objects
	SHA256  string `json:"sha256,omitempty"` // digest of a single file, in hexadecimal
	// Watermark is the time up to which a dataset's results are complete. It is
	// zero if the output has no watermark that a later run could continue from.
	Watermark load.WallTime `json:"watermark,omitzero"`
	// CompanionsError says why the codebook beside the output could not be
	// written. The data are complete without it.
	CompanionsError string `json:"companions_error,omitempty"`
	// DeadLetters is the path of the file or folder, or the name of the database's table, with the
	// results that this run rejected, "" if it rejected none.
	DeadLetters string `json:"dead_letters,omitempty"`
	// Changed says how many rows of a table this run changed.
	Changed *load.TableChange `json:"changed,omitempty"`
	// Untouched tells that this run ended before it wrote the output, which is as before.
	Untouched bool   `json:"untouched,omitempty"`
	Error     string `json:"error,omitempty"`
}

// holds fills in the rows, parts, bytes and watermark that a manifest lists.
func (r *Report) holds(m *load.Manifest) {
	r.Rows, r.Parts, r.Bytes, r.Watermark = m.Rows, len(m.Parts), 0, m.Watermark
	for _, p := range m.Parts {
		r.Bytes += p.Bytes
	}
}

// BuiltIn is the formats and destinations that the program is built with. Package
// cmd/internal/console fills it in; nothing registers itself.
type BuiltIn struct {
	Formats []load.Format
	// Open returns the destination at root. root is a folder, or a prefix with
	// a scheme such as s3://bucket/lake.
	Open func(ctx context.Context, root string, o definition.Output) (load.Destination, error)
	// OpenTable returns the table of a database that the address path names.
	OpenTable func(path string, o *definition.Database) (load.Table, error)
	// State returns the destination for the state at a folder or a bucket's address. o has the
	// settings of the bucket and may be nil.
	State func(ctx context.Context, path string, o *definition.S3) (load.Destination, error)
}

// Format returns the format with a name, and false if there is no such format.
func (b BuiltIn) Format(name string) (load.Format, bool) {
	for _, f := range b.Formats {
		if f.Name == name {
			return f, true
		}
	}
	return load.Format{}, false
}

// OutputsError reports that some outputs of a form failed. The others were committed.
type OutputsError struct{ Errors []error }

// Error lists the outputs' errors.
func (e *OutputsError) Error() string { return errors.Join(e.Errors...).Error() }

// Failed returns an *OutputsError of the given errors, or nil if there are none.
func Failed(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return &OutputsError{Errors: errs}
}

// Unwrap returns the outputs' errors.
func (e *OutputsError) Unwrap() []error { return e.Errors }
