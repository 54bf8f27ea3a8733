package xlsxout

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/formetl/formetl/load"
)

// NewWithin is New with sheets of that many rows.
func NewWithin(w io.Writer, schema *arrow.Schema, o load.EncodeOptions, maxRows int64) (load.Encoder, error) {
	e, err := New(w, schema, o)
	if err == nil {
		e.(*encoder).maxRows = maxRows
	}
	return e, err
}

// IsForbidden tells of the characters that no answer holds.
func IsForbidden(r rune) bool { return isForbidden(r) }
