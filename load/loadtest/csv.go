package loadtest

import (
	"errors"
	"fmt"
	"strings"
)

// Field is a field of a CSV file, and whether it stood in quotes: null is empty without them.
type Field struct {
	Text   string
	Quoted bool
}

// ParseCSV reads CSV by RFC 4180 with \n, byte by byte, and shares no code with the encoder. A
// file that is cut is an error. encoding/csv would not do: it changes line ends in values, and
// does not tell whether a field stood in quotes.
func ParseCSV(file, delimiter string) (rows [][]Field, err error) {
	for len(file) > 0 {
		var row []Field
		for end := delimiter; end == delimiter; {
			var f Field
			if f, file, err = parseField(file, delimiter); err != nil {
				return nil, fmt.Errorf("row %d: %w", len(rows), err)
			}
			row = append(row, f)
			end, file = file[:1], file[1:]
			if end != delimiter && end != "\n" {
				return nil, fmt.Errorf("row %d: a field ends with %q", len(rows), end)
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// parseField reads the field at the start of s, behind which rest has a byte at least.
func parseField(s, delimiter string) (f Field, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, delimiter+"\r\n\"")
		if end < 0 {
			return f, "", errors.New("the file ends within a field")
		}
		return Field{Text: s[:end]}, s[end:], nil
	}
	var text strings.Builder
	for s = s[1:]; ; s = s[1:] {
		inside, behind, closed := strings.Cut(s, `"`)
		if !closed || behind == "" {
			return f, "", errors.New("the file ends within quotes or behind them")
		}
		text.WriteString(inside)
		if s = behind; s[0] != '"' {
			return Field{Text: text.String(), Quoted: true}, s, nil
		}
		text.WriteByte('"')
	}
}
