package load

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load/internal/cells"
)

// Encoder writes record batches of one schema in one format. After an error it is not
// used again.
type Encoder interface {
	// Write appends the batch's rows. The batch has the encoder's schema. The
	// caller owns it, so an encoder that needs it after the call retains it.
	Write(batch arrow.RecordBatch) error
	// Close writes what is buffered and the end of the format. It does not
	// close the underlying writer. Without Close the file is incomplete.
	Close() error
}

// Discard gives up a file that was not closed, or that failed. It releases the batches
// that the encoder holds.
func Discard(e Encoder) {
	if d, ok := e.(interface{ Discard() }); ok {
		d.Discard()
	}
}

// CheckSchema returns an error for a schema of which no file can be written. A file needs
// at least one column, and no two columns may share a name.
func CheckSchema(schema *arrow.Schema) error {
	if schema.NumFields() == 0 {
		return errors.New("a file needs at least one column")
	}
	seen := make(map[string]bool, schema.NumFields())
	for i, f := range schema.Fields() {
		if seen[f.Name] {
			return fmt.Errorf("column %d: the name %q is used twice; rename one of them", i, f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// EncodeOptions are the settings of an encoder besides the schema.
type EncodeOptions struct {
	// Zone is the time zone in which text formats and xlsx show timestamps; nil is UTC.
	Zone *time.Location
	// Profile is the CSV profile: "" or "strict", or "excel".
	Profile string
	// Compression is the codec inside formats that have one (Parquet, Arrow):
	// "" (the format's default), "none", "zstd", "gzip" or "snappy".
	Compression string
	// Guarded is called with the heading of each cell to which the CSV profile excel adds a '; it
	// may be nil.
	Guarded func(column string)
	// Metadata is written into the footers of formats that have footers, in order.
	Metadata []KeyValue
}

// KeyValue is one entry of a file's metadata.
type KeyValue struct{ Key, Value string }

// Format is a file format. The program is built with a table of formats.
type Format struct {
	Name      string // the format's name in a definition: csv, ndjson, json, parquet, arrow, xlsx
	Extension string // extension of the format's files, with the dot: ".csv"
	// Text tells that files of the format may be compressed as a whole (.gz, .zst).
	Text bool
	// Codecs are the compressions inside files of a format that is no text, besides no
	// compression.
	Codecs []string
	// Cells tells that a value stands in a cell, so that lists are shown in one of several ways.
	Cells bool
	// Profiles tells that the format has the profiles of CSV.
	Profiles bool
	// FileOnly tells that the format cannot be used for the parts of a dataset.
	FileOnly bool
	// New returns an encoder of the schema, which CheckSchema takes, that writes to w.
	New func(w io.Writer, schema *arrow.Schema, o EncodeOptions) (Encoder, error)
}

// Compressions returns the names of the codecs that the format offers: around files of text
// formats, inside files of other formats.
func (f Format) Compressions() []string {
	if f.Text {
		return []string{CodecNone, CodecGzip, CodecZstd}
	}
	return append([]string{CodecNone}, f.Codecs...)
}

// ForSheets returns a text as the CSV profile excel writes it. It puts a ' in
// front if a spreadsheet would run the text as a formula.
func ForSheets(text string) string {
	if cells.Guarded(text) {
		return "'" + text
	}
	return text
}
