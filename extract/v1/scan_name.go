package v1

import "unicode/utf8"

// Roles of an ASCII byte in a name (XML 1.0, fifth edition, productions 4 and
// 4a).
const (
	nameStarts    = 1 << iota // a name may begin with it
	nameContinues             // a name may contain it
)

var nameTable = func() (t [utf8.RuneSelf]uint8) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == ':':
			t[c] = nameStarts | nameContinues
		case '0' <= c && c <= '9', c == '-', c == '.':
			t[c] = nameContinues
		}
	}
	return t
}()

// nameEnd returns the offset after the name at b[i], i if there is none. Beyond ASCII every
// character may be in a name but U+FFFD, which marks a replaced character here. A damaged
// name must not pass for an unknown element.
func nameEnd(b []byte, i int) int {
	role := uint8(nameStarts)
	for ; i < len(b); role = nameContinues {
		size := 1
		if c := b[i]; c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(b[i:]); r == utf8.RuneError {
				return i
			}
		} else if nameTable[c]&role == 0 {
			return i
		}
		i += size
	}
	return i
}

// blanks are the characters of white space in XML (production 3).
const blanks = " \t\r\n"

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
