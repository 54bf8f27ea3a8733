package xlsxout

import (
	"bytes"
	"io"
	"strings"

	"github.com/xuri/excelize/v2"
)

// Spreadsheets decode _x0041_ in a text to an A, from left to right. If a text
// holds such a sequence itself, the sequence's first underscore is therefore
// written as _x005F_.
//
// excelize escapes texts too, but it loses the halves of surrogate pairs
// (_xD83D_) and misses the second of two sequences that share an underscore. It
// does not change texts without such sequences. So it gets a text in pieces, cut
// after each underscore that must be escaped. An unpiecer then joins the pieces
// in the sheet's XML and adds the escapes.

// escaped returns the value to give to excelize for the text s: s itself, or its pieces.
func escaped(s string) any {
	i := strings.Index(s, "_x")
	if i < 0 {
		return s
	}
	var pieces []excelize.RichTextRun
	start := 0
	for ; i+7 <= len(s); i++ {
		if s[i] == '_' && s[i+1] == 'x' && s[i+6] == '_' && areHex(s[i+2:i+6]) {
			pieces = append(pieces, excelize.RichTextRun{Text: s[start : i+1]})
			start = i + 1
		}
	}
	if start == 0 {
		return s
	}
	return append(pieces, excelize.RichTextRun{Text: s[start:]})
}

func areHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

const (
	// cellStart begins each cell in a sheet's XML. No text holds it, because
	// texts have &lt; for <.
	cellStart = "<c "
	// blockSize is how many bytes of a sheet's XML are searched for split texts at once.
	blockSize = 64 << 10
)

// unpiecer passes a sheet's XML on to w. It joins the pieces into which escaped
// has split a text.
type unpiecer struct {
	w      io.Writer
	joints *strings.Replacer
	held   []byte // the beginning of a cell that is not complete yet
}

func newUnpiecer(w io.Writer) *unpiecer {
	const preserve = ` xml:space="preserve">`
	return &unpiecer{w: w, joints: strings.NewReplacer(
		"<is><r><t>", "<is><t"+preserve,
		"<is><r><t"+preserve, "<is><t"+preserve,
		"</t></r><r><t>", "x005F_",
		"</t></r><r><t"+preserve, "x005F_",
		"</t></r></is>", "</t></is>",
	)}
}

// Write passes complete cells of p on to w and keeps the rest.
func (u *unpiecer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), blockSize)
		u.held, rest = append(u.held, rest[:n]...), rest[n:]
		if end := bytes.LastIndex(u.held, []byte(cellStart)); end > 0 {
			if err := u.forward(end); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// forward passes the first n of the kept bytes on to w, with the pieces of texts joined.
func (u *unpiecer) forward(n int) error {
	whole := u.held[:n]
	if bytes.Contains(whole, []byte("<is><r>")) {
		if _, err := u.joints.WriteString(u.w, string(whole)); err != nil {
			return err
		}
	} else if _, err := u.w.Write(whole); err != nil {
		return err
	}
	u.held = append(u.held[:0], u.held[n:]...)
	return nil
}

// end passes all kept bytes on to w.
func (u *unpiecer) end() error { return u.forward(len(u.held)) }
