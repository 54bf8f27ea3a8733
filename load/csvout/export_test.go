package csvout

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
)

// NewWithin is New for a spreadsheet of that many rows.
func NewWithin(w io.Writer, schema *arrow.Schema, o load.EncodeOptions, maxRows int64) (load.Encoder, error) {
	e, err := newEncoder(w, schema, o, ',')
	if err != nil {
		return nil, err
	}
	e.limits.maxRows = maxRows
	return load.Guard(schema, e), nil
}
