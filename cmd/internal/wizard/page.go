package wizard

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/formetl/formetl/schemas/plain"
)

// Page is what is asked at once.
type Page struct{ Fields []*Field }

// Field is a question with its answer, which is what is proposed until somebody changes it.
type Field struct {
	Question
	Text    string   // the answer to a question for a text or a choice
	List    []string // the answer to one for several words
	Yes     bool
	Choices []Choice
	// Check returns what is wrong with the answer.
	Check func() error
	// Note explains the question, given an answer. It may be called at any time.
	Note func(answer string) string
}

// newPage makes the fields of questions. Their checks see the answers of the whole page.
func newPage(s *Session, questions []Question) *Page {
	p := &Page{}
	for _, q := range questions {
		f := &Field{Question: q, Text: s.proposal(q), Yes: s.proposal(q) == yes, Note: func(string) string { return sentence(q.Help) }}
		switch {
		case q.note != nil:
			f.Note = func(answer string) string { return q.note(s, answer) }
		case q.kind != text:
			f.Note = func(string) string { return "" } // the choices explain it
		}
		if q.choices != nil {
			f.Choices = q.choices(s)
		}
		if q.kind == several && f.Text != "" {
			f.List = []string{f.Text}
		}
		f.Check = func() error { return try(s, p, f) }
		p.Fields = append(p.Fields, f)
	}
	return p
}

// Answer is what stands in the field, or what is proposed if nothing does.
func (f *Field) Answer() []string {
	switch f.kind {
	case several:
		return f.List
	case yesNo:
		return []string{map[bool]string{true: yes, false: no}[f.Yes]}
	case text, choice:
	}
	if answer := strings.TrimSpace(f.Text); answer != "" {
		return []string{answer}
	}
	return nil
}

// Shown is the answer on a line.
func (f *Field) Shown() string {
	if f.kind == yesNo {
		return map[bool]string{true: "yes", false: "no"}[f.Yes]
	}
	return strings.Join(f.Answer(), ", ")
}

// try checks a field with the answers of its page in place.
func try(s *Session, p *Page, f *Field) error {
	before := s.answers
	defer func() { s.answers = before }()
	s.answers = maps.Clone(before)
	for _, other := range p.Fields {
		s.answers[other.Flag] = other.Answer()
	}
	if len(f.Answer()) == 0 && !f.optional && s.proposal(f.Question) == "" {
		if f.kind == several {
			return errors.New("nothing is chosen yet")
		}
		return errors.New("an answer is needed")
	}
	if text := s.problem(f.Question); text != "" {
		return errors.New(text)
	}
	return nil
}

// sentence is a flag's help as a sentence.
func sentence(help string) string {
	help, _, _ = strings.Cut(help, " (or FORMETL_")
	return strings.ToUpper(help[:1]) + help[1:] + "."
}

// answersText shows answers, one on each line, in the same columns for every page.
func answersText(fields []*Field) string {
	width := 0
	for _, q := range Questions() {
		width = max(width, len(q.Title))
	}
	lines := make([]string, len(fields))
	for i, f := range fields {
		lines[i] = strings.TrimRight(fmt.Sprintf("  %-*s  %s", width, f.Title, plain.Line(f.Shown())), " ")
	}
	return strings.Join(lines, "\n")
}
