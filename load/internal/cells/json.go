package cells

import "unicode/utf8"

// AppendJSON appends s as a JSON string, always in valid UTF-8. It escapes the characters
// that JSON requires to be escaped, and those that readers may take for the end of a line.
func AppendJSON(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		i := IndexJSON(s)
		if i < 0 {
			break
		}
		dst = append(dst, s[:i]...)
		var n int
		dst, n = appendSpecial(dst, s[i:])
		s = s[i+n:]
	}
	return append(append(dst, s...), '"')
}

// appendSpecial escapes and appends the start of s: one special character, or a
// run of characters outside ASCII. It returns dst and how many bytes of s it
// has handled.
func appendSpecial(dst []byte, s string) ([]byte, int) {
	const hex = "0123456789abcdef"
	switch c := s[0]; {
	case c >= utf8.RuneSelf:
		return appendRunes(dst, s)
	case c == '"' || c == '\\':
		return append(dst, '\\', c), 1
	case c == '\n':
		return append(dst, '\\', 'n'), 1
	case c == '\r':
		return append(dst, '\\', 'r'), 1
	case c == '\t':
		return append(dst, '\\', 't'), 1
	default:
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15]), 1
	}
}

// appendRunes appends the run of characters outside ASCII at the start of s. It returns dst
// and the run's length in bytes. Handling a whole run keeps texts in other scripts fast.
func appendRunes(dst []byte, s string) ([]byte, int) {
	start, i := 0, 0
	for i < len(s) && s[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(s[i:])
		var instead string
		switch {
		case r == utf8.RuneError && n == 1:
			instead = "\uFFFD"
		case r == '\u2028':
			instead = `\u2028`
		case r == '\u2029':
			instead = `\u2029`
		}
		if instead != "" {
			dst = append(append(dst, s[start:i]...), instead...)
			start = i + n
		}
		i += n
	}
	return append(dst, s[start:i]...), i
}
