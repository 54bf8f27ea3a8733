package page

import "testing"

// TestPlainLabel: a label is shown as its text, and only what is HTML is taken for HTML.
func TestPlainLabel(t *testing.T) {
	for label, want := range map[string]string{
		"":                              "",
		" Full\nname ":                  " Full\nname ",
		"a < b & c > d":                 "a < b & c > d",
		"x<y and y>z":                   "x<y and y>z",
		"AT&T; R&D":                     "AT&T; R&D",
		"<b>Full</b> <i>name</i>":       "Full name",
		"<p>What<BR/>else?</p>":         "What else?",
		`<span style="a&gt;b">H</span>`: "H",
		"Caf&eacute; &amp; bar&#33;":    "Café & bar!",
		"&lt;b&gt;":                     "<b>",
		"H<sub>2</sub>O":                "H2O",
	} {
		if got := PlainLabel(label); got != want {
			t.Errorf("%q: %q, want %q", label, got, want)
		}
	}
}
