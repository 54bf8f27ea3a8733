package pipelines

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

// ForeignFileError is a file that lies where a codebook would be written and is
// none of ours: it is left alone.
type ForeignFileError struct{ Path string }

// Error names the file and what to do.
func (e *ForeignFileError) Error() string {
	return e.Path + " is there, and is not a codebook that formetl wrote; it was left as it is, and no codebook was written"
}

// hintNoCodebook is what the log says beside a ForeignFileError.
const hintNoCodebook = "give the output or the file another name, or turn the codebook off: codebook: false in the output, or export --codebook=false"

// earlierFiles reads what lies in a codebook's place, and refuses what is not
// ours. schema is nil where there is none.
func earlierFiles(ctx context.Context, dest load.Store, place definition.CodebookPlace) (schema []byte, err error) {
	paths := place.Paths()
	for i, ours := range []func([]byte) bool{isCodebook, isCodebookTable} {
		name := []string{place.Schema(), place.Table()}[i]
		data, _, err := dest.Get(ctx, name)
		switch {
		case errors.Is(err, load.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("the codebook of earlier runs: %w", err)
		case len(bytes.TrimSpace(data)) > 0 && !ours(data):
			return nil, &ForeignFileError{Path: paths[i]}
		}
		if i == 0 {
			schema = data
		}
	}
	return schema, nil
}

// codebookHead is how encode begins, in every version.
var codebookHead = regexp.MustCompile(`^\{\n  "version": \d+,\n  "pipeline": "`)

// isCodebook tells whether a file is what encode wrote, now or in another
// version, and whoever formatted it since. Of one that is torn its beginning
// tells: nobody else's has these keys in this order and layout. Whatever is
// torn before that may be anybody's.
func isCodebook(data []byte) bool {
	var b struct {
		Version                  *int
		Pipeline, Form, Timezone string
		Columns                  []struct{ Name, Type, From string }
	}
	if !json.Valid(data) {
		return codebookHead.Match(data)
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

// codebookTableHead is how the heading of a codebook's table begins, in every
// version.
const codebookTableHead = "column,type,from,label,labels_before,"

// isCodebookTable tells whether a file is what table wrote. Spreadsheets write
// the same with other separators, in quotes, without the first character.
func isCodebookTable(data []byte) bool {
	head, _, _ := bytes.Cut(bytes.TrimPrefix(data, []byte("\uFEFF")), []byte("\n"))
	plain := strings.NewReplacer(`"`, "", ";", ",", "\t", ",").Replace(string(head))
	return strings.HasPrefix(plain, codebookTableHead)
}
