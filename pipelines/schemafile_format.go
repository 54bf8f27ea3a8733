package pipelines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/formetl/formetl/schemas"
)

// FormatSchema writes a schema as a schema file that LoadSchema reads back
// equal. Inferred is not part of a file: a column in a file is declared. The
// schema must be valid.
func FormatSchema(s *schemas.Schema) ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("write schema %q: %w", s.Name, err)
	}
	w := &schemaWriter{}
	w.line("version: 1")
	if s.Name != "" {
		w.line("name: " + w.scalar(s.Name))
	}
	w.line("unknown: " + string(or(s.Unknown, schemas.UnknownAdd)))
	w.line(fmt.Sprintf("max_rejects: %d", s.MaxRejects))
	w.line("empty: " + string(or(s.Empty, schemas.EmptyKeep)))
	if len(s.Columns) > 0 {
		w.line("columns:")
	}
	for _, c := range s.Columns {
		row := "  - {name: " + w.scalar(c.Name) + ", from: " + w.scalar(c.From.String()) + ", type: " + w.scalar(c.Type.String())
		if c.OnError != "" && c.OnError != schemas.OnErrorReject {
			row += ", on_error: " + string(c.OnError)
		}
		if c.Label != "" {
			row += ", label: " + w.scalar(c.Label)
		}
		w.line(row + "}")
	}
	if w.err != nil {
		return nil, fmt.Errorf("write schema %q: %w", s.Name, w.err)
	}
	return w.buf.Bytes(), nil
}

func or[T ~string](word, otherwise T) T {
	if word == "" {
		return otherwise
	}
	return word
}

// schemaWriter writes lines of YAML and keeps the first error.
type schemaWriter struct {
	buf bytes.Buffer
	err error
}

func (w *schemaWriter) line(s string) { w.buf.WriteString(s + "\n") }

var plainScalar = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// scalar spells text so that every YAML reader takes it as text: plain words
// as they are, all else in double quotes. JSON's escapes are YAML's too.
func (w *schemaWriter) scalar(text string) string {
	switch {
	case !utf8.ValidString(text):
		w.fail("%q is not valid UTF-8", text)
		return ""
	case strings.ContainsRune(text, 0):
		w.fail("%q holds the character NUL", text)
		return ""
	case plainScalar.MatchString(text) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, text):
		return text
	}
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil && w.err == nil {
		w.err = err
	}
	return strings.TrimSuffix(quoted.String(), "\n")
}

func (w *schemaWriter) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}
