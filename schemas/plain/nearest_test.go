package plain

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"format", "from", "path", "partition", "custom_labels", "csv", "lake.yaml"}
	for word, want := range map[string]string{
		"form": "from", "Format": "format", "formt": "format", "custom-labels": "custom_labels", "customLabels": "custom_labels",
		"cvs": "csv", "patition": "partition", "colour": "", "x": "", "": "", "part": "path", "csvv": "csv", "lke.yml": "lake.yaml", "gone.yaml": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%s to %s: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
