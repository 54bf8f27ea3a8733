package page

import (
	"html"
	"regexp"
	"strings"
)

var (
	tags       = regexp.MustCompile(`(?i)</?(?:a|b|big|br|center|div|em|font|h[1-6]|hr|i|img|li|ol|p|small|span|strong|sub|sup|table|tbody|td|th|tr|u|ul)(?:\s[^<>]*)?/?>`)
	references = regexp.MustCompile(`&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31}\d{0,2});`)
)

// PlainLabel returns the text of a label that holds HTML, as a form shows it: without tags, with
// characters in place of references such as &amp;. A label without tags and references, such as
// "a < b & c", is returned as it is.
func PlainLabel(label string) string {
	if !strings.ContainsAny(label, "<&") {
		return label
	}
	text := label
	if tags.MatchString(text) {
		text = strings.Join(strings.Fields(tags.ReplaceAllStringFunc(text, func(tag string) string {
			switch strings.ToLower(strings.Trim(strings.Fields(strings.Trim(tag, "<>/"))[0], "/")) {
			case "a", "b", "big", "em", "font", "i", "small", "span", "strong", "sub", "sup", "u":
				return "" // within a line
			}
			return " "
		})), " ")
	}
	return references.ReplaceAllStringFunc(text, html.UnescapeString)
}
