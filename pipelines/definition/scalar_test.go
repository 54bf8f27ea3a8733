package definition

import (
	"math/rand/v2"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestScalar holds that YAML readers take what is written as the text that was meant:
// words that mean something to YAML, and random texts of characters that do.
func TestScalar(t *testing.T) {
	alphabet := []rune("ab1 /.:#-{}[]$,*&!|>%@`'\"\\~_=?+\nÄ")
	texts := slices.Grow([]string{
		"feedback", "*", "{form}.csv", "s3://bucket/{form}/", "true", "no", "null", "12", "1e5", "2026-01-01", "a: b", "a #b", "a:", " a",
		"${env:KEY}", "${cmd:pass show 'my key'}", "Ä/ö", "a\tb", "-", "- a", "a, b", "[a]", "\"", "'", "~", "é\u2028", "/", "$", "y", "",
	}, 5000)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := make([]rune, random.IntN(6))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		var read struct {
			A string
			B []string
		}
		document := "a: " + Scalar(text) + "   # a comment\nb: [" + Scalar(text) + ", x]\n"
		if err := yaml.Unmarshal([]byte(document), &read); err != nil || read.A != text || !slices.Equal(read.B, []string{text, "x"}) {
			t.Errorf("%q was read as %q, %v from\n%s", text, read, err, document)
		}
	}
}
