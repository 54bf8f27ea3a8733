// Package show is how formetl talks to a person: tables, JSON, questions, and
// numbers, sizes and times in words.
//
// Data goes to the writer that a command passes, which is standard output, in
// one write whose failure is a *output.StdoutError. Names come from services
// and files, so tables show every cell on one line and without characters that
// could steer a terminal.
//
// The package knows no command and no log; what a command tells on standard
// error goes through package telemetry. Begin reading at Table.
package show

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/schemas/plain"
)

// Print writes data in one go. A failure is a *output.StdoutError, so that a
// full disk behind a redirection does not go unnoticed.
func Print(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return &output.StdoutError{Err: err}
	}
	return nil
}

// JSON prints a value as indented JSON.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // an embed code is HTML and must stay readable
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return Print(w, plain.JSON(b.Bytes()))
}

// Table prints rows in columns.
func Table(w io.Writer, rows ...[]string) error {
	return Print(w, []byte(Columns("", rows)))
}

// Rows appends a row for each item to the first rows of a table.
func Rows[T any](first [][]string, items []T, row func(T) []string) [][]string {
	rows := slices.Grow(first, len(items))
	for _, item := range items {
		rows = append(rows, row(item))
	}
	return rows
}

// Columns is the text of a table, each line behind an indent.
func Columns(indent string, rows [][]string) string {
	var aligned, b strings.Builder
	t := tabwriter.NewWriter(&aligned, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = plain.Line(c)
		}
		_, _ = t.Write([]byte(strings.Join(cells, "\t") + "\n")) // into memory
	}
	_ = t.Flush()
	for line := range strings.Lines(aligned.String()) {
		b.WriteString(strings.TrimRight(indent+line, " \n") + "\n")
	}
	return b.String()
}
