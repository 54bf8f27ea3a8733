package page

import (
	"html"
	"regexp"
	"strings"
	"sync"
)

// They are compiled when a label has one of their characters, and not at each start.
var (
	lineTags   = compiled(`(?i)</?(?:a|b|big|em|font|i|small|span|strong|sub|sup|u)(?:\s[^<>]*)?/?>`)
	blockTags  = compiled(`(?i)</?(?:br|center|div|h[1-6]|hr|img|li|ol|p|table|tbody|td|th|tr|ul)(?:\s[^<>]*)?/?>`)
	references = compiled(`&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31}\d{0,2});`)
)

func compiled(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// PlainLabel returns the text of a label that holds HTML, as a form shows it: without tags, with
// characters in place of references such as &amp;. A label without tags and references, such as
// "a < b & c", is returned as it is.
func PlainLabel(label string) string {
	if !strings.ContainsAny(label, "<&") {
		return label
	}
	text := blockTags().ReplaceAllString(lineTags().ReplaceAllString(label, ""), " ")
	if text != label { // HTML shows line breaks as blanks
		text = strings.Join(strings.Fields(text), " ")
	}
	return references().ReplaceAllStringFunc(text, html.UnescapeString)
}
