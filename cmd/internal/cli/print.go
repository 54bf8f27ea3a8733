package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/formetl/formetl/pipelines"
)

// print writes data to standard output in one go. A failure is an error: a
// full disk behind a redirection must not go unnoticed.
func (a *app) print(data []byte) error {
	if _, err := a.stdout.Write(data); err != nil {
		return &pipelines.StdoutError{Err: err}
	}
	return nil
}

// printJSON writes a value as indented JSON.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // embed codes are HTML, and this is no page
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return a.print(b.Bytes())
}

// printTable writes rows in columns.
func (a *app) printTable(rows ...[]string) error {
	var b bytes.Buffer
	writeTable(&b, "", rows)
	return a.print(b.Bytes())
}

// writeTable aligns columns. What services call things is shown on one line
// and without characters that could steer a terminal.
func writeTable(w io.Writer, indent string, rows [][]string) {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = cell(c)
		}
		_, _ = t.Write([]byte(strings.Join(cells, "\t") + "\n")) // into memory
	}
	_ = t.Flush()
	for line := range strings.Lines(b.String()) {
		_, _ = io.WriteString(w, strings.TrimRight(indent+line, " \n")+"\n") // into memory, too
	}
}

func cell(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
	}), " ")
}
