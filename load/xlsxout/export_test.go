package xlsxout

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
)

// NewWithin is New with sheets of that many rows.
func NewWithin(w io.Writer, schema *arrow.Schema, o load.EncodeOptions, maxRows int64) (load.Encoder, error) {
	e, err := newEncoder(w, schema, o)
	if err != nil {
		return nil, err
	}
	e.maxRows = maxRows
	return e, nil
}

// IsForbidden tells of the characters that no answer holds.
func IsForbidden(r rune) bool { return isForbidden(r) }
