// Package labels writes scripts for statistics programs, SPSS (and PSPP) and R. A script reads
// a CSV file of formetl with types, variable labels and the labels of values.
//
// Names, labels and choices come from a service and may hold anything. They stand in string
// literals alone, whose ends and line ends they cannot break, and never in a comment.
//
// Begin reading with File.
package labels

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// File is a CSV file, and what a script has to know of it. Measure comes before SPSS and R.
type File struct {
	Path    string
	Zone    string // IANA name of the account's zone
	Local   bool   // timestamps are wall-clock times without an offset, as profile excel writes them; Measure finds out
	Columns []Column
	Broken  string // the first place of a line break in a value or heading; "" for none
}

// Column is a column of the file.
type Column struct {
	Name    string // the heading in the file
	Label   string // the form's words on one line; "" for none
	Type    schemas.Type
	Choices []string // the choices of a string, as the file has them; nil if it has none

	width int  // bytes of the longest value or choice
	large bool // a whole number lies beyond what a float64 holds exactly
}

// Columns returns the columns that CSV has for those of an output. A list with list_as: columns
// becomes a bool for each choice. choices are the known choices of columns, by source. inFile
// gives a text as the file has it, see load.ForSheets. A string of which a choice cannot be shown
// has no choices.
func Columns(columns []schemas.Column, choices map[schemas.Source][]string, inFile func(string) string) (all []Column) {
	names := schemas.ChoiceNames(columns)
	for i, c := range columns {
		for k, name := range names[i] {
			all = append(all, Column{Name: inFile(name), Label: plain.Line(c.Label + ": " + c.Choices[k]), Type: schemas.Type{Kind: schemas.Bool}})
		}
		if c.ListAs == schemas.ListColumns {
			continue
		}
		column := Column{Name: inFile(c.Name), Label: plain.Line(c.Label), Type: c.Type}
		known := slices.Concat(c.Choices, choices[c.From])
		if c.Type.Kind == schemas.String && c.PII.Kind == schemas.PIINone && !strings.ContainsFunc(strings.Join(known, ""), plain.Unsafe) {
			for _, choice := range known {
				if choice = inFile(choice); choice != "" && !slices.Contains(column.Choices, choice) {
					column.Choices = append(column.Choices, choice)
					column.width = max(column.width, len(choice))
				}
			}
		}
		all = append(all, column)
	}
	return all
}

const bom = "\uFEFF"

// breaks replaces line breaks by blanks.
var breaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// Measure reads the file from r, to learn how long its texts and how large its numbers are. It
// writes the same values to flat, with a blank for each line break.
func (f *File) Measure(r io.Reader, flat io.Writer) error {
	begin := bufio.NewReader(r)
	if mark, err := begin.Peek(len(bom)); err == nil && string(mark) == bom {
		_, _ = begin.Discard(len(bom)) // nothing fails after Peek
	}
	in, out := csv.NewReader(begin), csv.NewWriter(flat)
	in.ReuseRecord = true
	for row := 0; ; row++ {
		record, err := in.Read()
		if err == io.EOF {
			out.Flush()
			return out.Error()
		}
		if err != nil {
			return fmt.Errorf("it is no CSV file that formetl wrote: %w", err)
		}
		if len(record) != len(f.Columns) {
			return fmt.Errorf("it has %s, and the definition writes %d; give a file with all of them, not one made with --select", plain.Plural(len(record), "column"), len(f.Columns))
		}
		for i, text := range record {
			c := &f.Columns[i]
			record[i] = breaks.Replace(text)
			if record[i] != text && f.Broken == "" {
				f.Broken = fmt.Sprintf("row %d, column %s", row, plain.Line(c.Name))
			}
			switch {
			case row > 0 && c.Type.Kind == schemas.Int64:
				n, _ := strconv.ParseFloat(text, 64) // 0 for null
				c.large = c.large || math.Abs(n) >= 1<<53
			case row > 0 && c.Type.Kind == schemas.Timestamp:
				f.Local = f.Local || strings.Contains(text, " ")
			case row == 0 && text != c.Name:
				return errors.New("the file's columns are not those of the definition; run `formetl run` for this definition, then this command again")
			}
			c.width = max(c.width, len(text))
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
}
