package codebook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

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

// earlierFiles reads the codebook that lies at a place. A file that formetl did not
// write is a *ForeignFileError. schema is nil where there is none.
func earlierFiles(ctx context.Context, dest load.Store, place definition.CodebookPlace) (schema []byte, err error) {
	for i, file := range []struct {
		name string
		ours func([]byte) bool
	}{{place.Schema(), isSchema}, {place.Table(), isTable}} {
		data, _, err := dest.Get(ctx, file.name)
		switch {
		case errors.Is(err, load.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("the codebook of earlier runs: %w", err)
		case len(bytes.TrimSpace(data)) > 0 && !file.ours(data):
			return nil, &ForeignFileError{Path: place.Paths()[i]}
		}
		if i == 0 {
			schema = data
		}
	}
	return schema, nil
}

// schemaHead is how the files that encode writes begin, in every version.
var schemaHead = regexp.MustCompile(`^\{\n  "version": \d+,\n  "pipeline": "`)

// isSchema tells whether encode wrote a file, in this or another version, even if
// another program has formatted it since. A file that was cut short is recognised
// by its beginning; one that ends before that is taken for somebody else's.
func isSchema(data []byte) bool {
	var b struct {
		Version                  *int
		Pipeline, Form, Timezone string
		Columns                  []struct{ Name, Type, From string }
	}
	if !json.Valid(data) {
		return schemaHead.Match(data)
	}
	if err := json.Unmarshal(data, &b); err != nil || b.Version == nil || b.Form == "" || b.Timezone == "" || b.Columns == nil {
		return false
	}
	for _, c := range b.Columns {
		if c.Name == "" || c.Type == "" || c.From == "" {
			return false
		}
	}
	return b.Pipeline != ""
}

// tableHead is how the heading of a codebook's table begins, in every
// version.
const tableHead = "column,type,from,label,labels_before,"

// isTable tells whether table wrote a file. A spreadsheet may have saved it since with
// other separators, with quotes, or without the byte order mark.
func isTable(data []byte) bool {
	head, _, _ := bytes.Cut(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\n"))
	plain := strings.NewReplacer(`"`, "", ";", ",", "\t", ",").Replace(string(head))
	return strings.HasPrefix(plain, tableHead)
}
