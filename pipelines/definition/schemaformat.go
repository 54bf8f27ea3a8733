package definition

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// Notes are the comments that FormatSchema writes into a schema file. Each text becomes one line:
// characters that would end the line are replaced.
type Notes struct {
	Head    []string   // comments at the top of the file
	Columns [][]string // comments above each column, by its index; columns beyond the end have none
}

// FormatSchema returns a schema as the text of a schema file, with notes as comments. LoadSchema
// reads the file back as an equal schema, except for Column.Inferred, which is false for every
// column of a file. The error is of a schema that Schema.Validate refuses, or that YAML cannot
// hold.
func FormatSchema(s *schemas.Schema, notes Notes) ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("write schema %q: %w", s.Name, err)
	}
	w := &schemaWriter{}
	w.comments("", notes.Head)
	w.line("version: 1")
	if s.Name != "" {
		w.line("name: " + w.scalar(s.Name))
	}
	w.line("unknown: " + string(cmp.Or(s.Unknown, schemas.UnknownAdd)))
	w.line(fmt.Sprintf("max_rejects: %d", s.MaxRejects))
	if s.MaxColumns > 0 {
		w.line(fmt.Sprintf("max_columns: %d", s.MaxColumns))
	}
	w.line("empty: " + string(cmp.Or(s.Empty, schemas.EmptyKeep)))
	if s.HMACReference != "" {
		w.line("hmac_key: " + w.scalar(s.HMACReference))
	}
	if len(s.Columns) > 0 {
		w.line("columns:")
	}
	for i, c := range s.Columns {
		if i < len(notes.Columns) {
			w.comments("  ", notes.Columns[i])
		}
		w.line("  - {" + strings.Join(w.column(c), ", ") + "}")
	}
	if w.err != nil {
		return nil, fmt.Errorf("write schema %q: %w", s.Name, w.err)
	}
	return w.buf.Bytes(), nil
}

// column returns the entries "key: value" of a column: name, from, type, and every other key
// whose value is not its default.
func (w *schemaWriter) column(c schemas.Column) []string {
	keys := []string{"name: " + w.scalar(c.Name), "from: " + w.scalar(c.From.String()), "type: " + w.scalar(c.Type.String())}
	add := func(given bool, key, text string) {
		if given {
			keys = append(keys, key+": "+text)
		}
	}
	r := c.Reading
	formats := w.list(r.Formats)
	if len(r.Formats) == 1 {
		formats = w.scalar(r.Formats[0])
	}
	add(len(r.Formats) > 0, "format", formats)
	add(len(r.True) > 0, "true_values", w.list(r.True))
	add(len(r.False) > 0, "false_values", w.list(r.False))
	add(r.Decimal != "", "decimal_separator", w.scalar(r.Decimal))
	add(r.Group != "", "group_separator", w.scalar(r.Group))
	add(c.Required, "nullable", "false")
	add(c.OnError != "" && c.OnError != schemas.OnErrorReject, "on_error", string(c.OnError))
	add(c.PII.Kind != schemas.PIINone, "pii", c.PII.String())
	add(c.ListAs != "", "list_as", string(c.ListAs))
	add(len(c.Choices) > 0, "choices", w.list(c.Choices))
	add(c.Other != "", "other", string(c.Other))
	add(c.Explode, "explode", "true")
	add(c.Label != "", "label", w.scalar(c.Label))
	return keys
}

func (w *schemaWriter) list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = w.scalar(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// schemaWriter collects the lines of a schema file, and keeps the first error.
type schemaWriter struct {
	buf bytes.Buffer
	err error
}

func (w *schemaWriter) line(s string) { w.buf.WriteString(s + "\n") }

// comments writes a comment line of YAML for each text.
func (w *schemaWriter) comments(indent string, texts []string) {
	for _, text := range texts {
		w.line(strings.TrimRight(indent+"# "+plain.Line(text), " "))
	}
}

var plainScalar = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// scalar returns Scalar(text), and keeps an error if YAML cannot hold the text.
func (w *schemaWriter) scalar(text string) string {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		w.err = cmp.Or(w.err, fmt.Errorf("%q is not valid UTF-8, or holds the character NUL", text))
	}
	return Scalar(text)
}

// Scalar spells a text so that every YAML reader takes it as text: plain words without quotes,
// anything else in double quotes with the escapes of JSON, which are valid in YAML too.
func Scalar(text string) string {
	if plainScalar.MatchString(text) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, text) {
		return text
	}
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(string(plain.JSON(quoted.Bytes())), "\n")
}
