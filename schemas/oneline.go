package schemas

import (
	"strings"
	"unicode"
)

// OneLine returns a text of the service as it may be shown to people: on one line, in valid
// UTF-8, and without what could steer a terminal or reverse the text around it. Runs of
// control characters (C0, C1), of white space and of characters that set the direction
// become one blank. Whatever comes from the service and reaches a terminal or a comment goes
// through it; JSON and quoted YAML escape such characters instead.
func OneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
	}), " ")
}

// Cut shortens a text to so many characters, of which the last is then an ellipsis.
func Cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
