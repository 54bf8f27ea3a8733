package load

import (
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Encoder writes record batches of one schema in one format.
type Encoder interface {
	// Write appends the batch's rows. The batch has the encoder's schema and
	// stays the caller's: an encoder that needs it longer retains it.
	Write(batch arrow.RecordBatch) error
	// Close writes what is buffered and the format's end. It does not close
	// the writer beneath. An encoder that is not closed has written no
	// complete file.
	Close() error
}

// Warner is the optional ability of an encoder to tell what was written as it
// is and will not be shown whole by the programs that the format is for. It is
// asked after Close; a warning names columns and counts, never a value.
type Warner interface{ Warnings() []string }

// EncodeOptions is what an encoder may be told beyond the schema.
type EncodeOptions struct {
	// Zone gives text formats the offset of timestamps; nil is UTC.
	Zone *time.Location
	// Profile is the CSV profile: "" or "strict", or "excel".
	Profile string
	// Compression is the codec inside formats that have one (Parquet, Arrow):
	// "" (the format's default), "none", "zstd", "gzip" or "snappy".
	Compression string
	// Metadata is written into the footers of formats that have one, in order.
	Metadata []KeyValue
	// TempDir is where a format that cannot be written in one go keeps what
	// does not fit into memory; "" is the system's folder. What is there holds
	// results: it is for the owner alone, and goes with the encoder.
	TempDir string
}

// KeyValue is one entry of a file's metadata.
type KeyValue struct{ Key, Value string }

// Format is a file format: a row of the table that the program is built with.
type Format struct {
	Name      string // as in a definition: csv, ndjson, json, parquet, arrow, xlsx
	Extension string // with the dot: ".csv"
	// Text formats may be compressed from outside (.gz, .zst).
	Text bool
	// FileOnly formats cannot be the parts of a dataset.
	FileOnly bool
	// New returns an encoder of the schema that writes to w.
	New func(w io.Writer, schema *arrow.Schema, o EncodeOptions) (Encoder, error)
}
