package xlsxout

import "strings"

// appendText appends a text as the content of a cell's element. Markup is escaped
// as XML has it. A line feed and a tab stay, because a parser keeps them.
//
// Spreadsheets decode _x0041_ in a text to an A, from left to right. If a text
// holds such a sequence itself, the sequence's first underscore is therefore
// written as _x005F_.
func appendText[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := 0
	for i := range len(s) {
		var instead string
		switch s[i] {
		case '&':
			instead = "&amp;"
		case '<':
			instead = "&lt;"
		case '>':
			instead = "&gt;"
		case '"':
			instead = "&quot;"
		case '\r': // a parser would turn CR into a line feed
			instead = "&#xD;"
		case '_':
			if !isCoded(s[i:]) {
				continue
			}
			instead = "_x005F_"
		default:
			continue
		}
		dst = append(append(dst, s[start:i]...), instead...)
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// codedLength is the length of a sequence such as _x0041_.
const codedLength = 7

// isCoded tells whether s begins with a sequence that spreadsheets decode.
func isCoded[T ~string | ~[]byte](s T) bool {
	return len(s) >= codedLength && s[0] == '_' && s[1] == 'x' && s[6] == '_' &&
		strings.Trim(string(s[2:6]), "0123456789abcdefABCDEF") == ""
}
