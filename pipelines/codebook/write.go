package codebook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
)

// ForeignFileError is a file that lies where a codebook would be written and that
// formetl did not write. It is left as it is.
type ForeignFileError struct{ Path string }

// Error names the file and what to do.
func (e *ForeignFileError) Error() string {
	return e.Path + " is there, and is not a codebook that formetl wrote; it was left as it is, and no codebook was written"
}

// Hint is what the log says beside a ForeignFileError.
const Hint = "give the output or the file another name, or turn the codebook off: codebook: false in the output; of an export, leave --codebook out"

// How the two files begin.
const (
	schemaHead = "{\n  \"version\": 1,\n  \"pipeline\": \""
	tableHead  = "\uFEFFcolumn,type,from,label,"
)

// Write writes a codebook to its place at a destination: the table, then the
// schema. Where the output keeps parts of earlier runs (adds), the choices that
// the codebook before lists are kept too. A file there that formetl did not write
// is a *ForeignFileError.
func Write(ctx context.Context, dest load.Store, place definition.CodebookPlace, b Book, adds bool) error {
	paths := place.Paths()
	before, err := own(ctx, dest, place.Schema(), paths[0], schemaHead)
	if err != nil {
		return err
	}
	if _, err := own(ctx, dest, place.Table(), paths[1], tableHead); err != nil {
		return err
	}
	var earlier Book
	if adds && json.Unmarshal(before, &earlier) == nil { // one that was cut short has nothing to say
		b.remember(&earlier)
	}
	data, err := b.encode()
	if err != nil {
		return err
	}
	// The schema is written last, because the next run reads it.
	if err := dest.Put(ctx, place.Table(), b.table(), load.AnyVersion); err != nil {
		return err
	}
	return dest.Put(ctx, place.Schema(), data, load.AnyVersion)
}

// own reads a file of an earlier codebook, nil if there is none. A file that does not
// begin as ours do is a *ForeignFileError.
func own(ctx context.Context, dest load.Store, name, path, head string) ([]byte, error) {
	data, _, err := dest.Get(ctx, name)
	switch {
	case errors.Is(err, load.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the codebook of earlier runs: %w", err)
	case len(bytes.TrimSpace(data)) > 0 && !bytes.HasPrefix(data, []byte(head)):
		return nil, &ForeignFileError{Path: path}
	}
	return data, nil
}
