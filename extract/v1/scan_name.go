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

// nameEnd returns the offset after the name at b[i], i if there is none.
func nameEnd(b []byte, i int) int {
	role := uint8(nameStarts)
	for ; i < len(b); role = nameContinues {
		c := b[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(b[i:])
			if !nameRune(r, role == nameStarts) {
				return i
			}
			i += n
			continue
		}
		if nameTable[c]&role == 0 {
			return i
		}
		i++
	}
	return i
}

// nameRune tells whether a character beyond ASCII may begin a name or occur in
// it. XML also allows U+FFFD, but here that marks a replaced character. A
// damaged name must not pass for an unknown element.
func nameRune(r rune, begins bool) bool {
	switch {
	case r == 0xd7, r == 0xf7, r == 0x37e:
		return false
	case r == 0xb7, 0x300 <= r && r <= 0x36f, r == 0x203f, r == 0x2040:
		return !begins
	}
	return 0xc0 <= r && r <= 0x1fff || r == 0x200c || r == 0x200d || 0x2070 <= r && r <= 0x218f ||
		0x2c00 <= r && r <= 0x2fef || 0x3001 <= r && r <= 0xd7ff || 0xf900 <= r && r <= 0xfdcf ||
		0xfdf0 <= r && r < 0xfffd || 0x10000 <= r && r <= 0xeffff
}

// blanks are the characters of white space in XML (production 3).
const blanks = " \t\r\n"

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
