package wizard

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/formetl/formetl/load"
)

// TestScalar holds that YAML readers take what is written as the text that was meant:
// words that mean something to YAML, and random texts of characters that do.
func TestScalar(t *testing.T) {
	texts := []string{
		"feedback", "*", "{form}.csv", "out/{form}.csv", "s3://bucket/{form}/", "true", "No", "null", "12", "1e5", "2026-01-01", "a: b", "a #b", "a:", " a",
		"${env:KEY}", "${cmd:pass show 'my key'}", "America/Chicago", "Ä/ö", "a\tb", "-", "- a", "a, b", "[a]", "\"", "'", "~", "é\u2028", "/", "$", "y", "",
	}
	for _, text := range texts {
		checkScalar(t, text)
	}
	alphabet := []rune("ab1 /.:#-{}[]$,*&!|>%@`'\"\\~_=?+\nÄ")
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := make([]rune, random.IntN(6))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		checkScalar(t, string(text))
	}
}

func checkScalar(t *testing.T, text string) {
	t.Helper()
	var read struct {
		A string
		B []string
	}
	document := "a: " + scalar(text) + "   # a comment\nb: [" + flowScalar(text) + ", x]\n"
	if err := yaml.Unmarshal([]byte(document), &read); err != nil || read.A != text || !slices.Equal(read.B, []string{text, "x"}) {
		t.Errorf("%q was read as %q, %v from\n%s", text, read, err, document)
	}
}

// TestNamesOfForms: a form whose name looks like YAML or like a reference is read as it is.
func TestNamesOfForms(t *testing.T) {
	for _, form := range []string{"on", "123", "a b", "ä", "${x}", "x,y", "a'b"} {
		w := newWorld(t, datedForm("2026-02-01 00:00:00"))
		w.service.Forms[0].Directory = form
		_, err := w.begin(t, nil, "--base-url", w.url, "--account", "acme", "--form", form, "-o", "p.yaml")
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		if def := w.load(t, "p.yaml"); !slices.Equal(def.Forms, []string{form}) {
			t.Errorf("%s: read as %q", form, def.Forms)
		}
	}
}

// TestWriteAll: if one file cannot be written, none is there, and nothing else is left.
func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	err := writeAll([]madeFile{{filepath.Join(dir, "a"), "", []byte("a")}, {filepath.Join(dir, "none", "b"), "", []byte("b")}})
	if _, is := errors.AsType[*load.CreateError](err); !is {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if err := writeAll([]madeFile{{filepath.Join(dir, "a"), "", []byte("a")}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
}
