package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/schemas/plain"
)

// Print writes data in one write. A failure is a *output.StdoutError, so that a full disk behind
// a redirection is reported.
func Print(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return &output.StdoutError{Err: err}
	}
	return nil
}

// Show prints the result of a command: the value v as indented JSON, or text for people.
func Show(w io.Writer, asJSON bool, v any, text string) error {
	if !asJSON {
		return Print(w, []byte(text))
	}
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

// Columns returns the text of a table with aligned columns. Each line begins with indent.
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

// IsTerminal tells whether a stream is a terminal, where a person can read or type.
func IsTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor is small
}

// Ask asks a person a yes-or-no question and reads the answer. Any answer but y or yes means no,
// and then Ask prints otherwise, which says what that means, such as "nothing was sent". If ctx
// ends first, the error is its cause.
func Ask(ctx context.Context, in io.Reader, out io.Writer, question, otherwise string) (bool, error) {
	fmt.Fprint(out, question)
	line, err := ReadLine(ctx, bufio.NewReader(in), out)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		line = "" // a line without its end is no answer
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	fmt.Fprintln(out, strings.ToUpper(otherwise[:1])+otherwise[1:]+".")
	return false, nil
}

// ReadLine reads the line that a person types after a question on out. The error is io.EOF if the
// input ends before the line does, or the cause of ctx if that ends first.
func ReadLine(ctx context.Context, in *bufio.Reader, out io.Writer) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() { // ends with the process if nobody types
		line, err := in.ReadString('\n')
		done <- read{line, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return "", context.Cause(ctx)
	case r := <-done:
		if r.err != nil {
			fmt.Fprintln(out)
		}
		return r.line, r.err
	}
}
