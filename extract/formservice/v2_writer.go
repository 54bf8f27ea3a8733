package formservice

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonWriter appends JSON to buf.
type jsonWriter struct {
	buf     []byte
	control string // how characters are written that XML forbids: raw, ref or "" for U+FFFD
}

// comma separates from what stands before, within an object or array.
func (w *jsonWriter) comma() {
	if n := len(w.buf); n > 0 && strings.IndexByte("{[:", w.buf[n-1]) < 0 {
		w.buf = append(w.buf, ',')
	}
}

// open begins an object or array, where a value may stand.
func (w *jsonWriter) open(bracket byte) {
	w.comma()
	w.buf = append(w.buf, bracket)
}

// close ends an object or array.
func (w *jsonWriter) close(bracket byte) { w.buf = append(w.buf, bracket) }

// key writes the name of a member, whose value must follow.
func (w *jsonWriter) key(name string) {
	w.text(name)
	w.buf = append(w.buf, ':')
}

func (w *jsonWriter) member(name, value string) {
	w.key(name)
	w.text(value)
}

func (w *jsonWriter) numberMember(name string, value int64) {
	w.key(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
}

// text writes a string.
func (w *jsonWriter) text(s string) {
	w.comma()
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r > '~' }) < 0 {
		w.buf = append(append(append(w.buf, '"'), s...), '"')
		return
	}
	switch w.control {
	case "raw":
		s = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
		w.buf = append(append(append(w.buf, '"'), s...), '"')
		return
	case "":
		s = strings.Map(func(r rune) rune {
			if !allowed(r) {
				return utf8.RuneError
			}
			return r
		}, s)
	}
	quoted, _ := json.Marshal(s) // which knows every string
	w.buf = append(w.buf, quoted...)
}
