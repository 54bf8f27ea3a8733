package labels

import (
	"regexp"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

// FuzzNothingBreaksOut: whatever the words of a service are, all of them stand in literals, each
// on one line. So what stands outside does not depend on them.
func FuzzNothingBreaksOut(f *testing.F) {
	for _, words := range []string{
		"it's", `say "x"`, `back\`, `\"); q()`, "a\nb.\nHOST COMMAND=['ls'].", "end.", "* comment", "/* open", "'' + ''", "\r\n.\r\n", "\u2028.", "\u0085",
		strings.Repeat("'", 400), strings.Repeat("é", 300), "%s %[1]s", "\u202e", "日本", "\xff\x00", strings.Repeat("\x80", 300),
	} {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		usual := "w"
		if strings.ContainsFunc(words, plain.Unsafe) {
			usual = "w\n" // choices that cannot be shown are left out
		}
		got, want := outside("w"+words), outside(usual)
		for program := range got {
			if got[program] != want[program] {
				t.Errorf("%q is not within literals:\n%s\nand not\n%s", words, got[program], want[program])
			}
		}
	})
}

var (
	comments = regexp.MustCompile(`(?m)^[*#].*\n`)
	literals = regexp.MustCompile(`'(?:[^'\n]|'')*'(?: \+\n +'(?:[^'\n]|'')*')*`)
	quotes   = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	names    = regexp.MustCompile(`\bcolumn_w[a-z0-9_]*|\bA[0-9]+`) // and widths
)

// outside returns both scripts for columns with the words, without their literals and the names
// that are made of the words.
func outside(words string) [2]string {
	file := &File{Path: "/srv/" + words + ".csv", Zone: "UTC"}
	for kind := schemas.String; kind <= schemas.List; kind++ {
		elem := schemas.Type{Kind: schemas.String}
		file.Columns = append(file.Columns, Columns([]schemas.Column{{
			Name: "column w" + words, Label: words, Type: schemas.Type{Kind: kind, Elem: &elem}, Choices: []string{words, "x"},
		}}, nil, strings.Clone)...)
	}
	spss := literals.ReplaceAllString(comments.ReplaceAllString(SPSS(file), ""), "TEXT")
	return [2]string{names.ReplaceAllString(spss, "NAME"), quotes.ReplaceAllString(comments.ReplaceAllString(R(file), ""), "TEXT")}
}

// TestSPSSNames: names are words that SPSS takes, each of which is there once.
func TestSPSSNames(t *testing.T) {
	columns := []Column{{Name: "Full name"}, {Name: "with"}, {Name: "comment"}, {Name: "Document"}, {Name: "1st"}, {Name: "full_name"}, {Name: "Comment_2"}, {Name: "comment__2"}}
	if got := strings.Join(spssNames(columns), " "); got != "full_name_2 with_2 comment_3 document_2 v_1st full_name comment_2 comment__2" {
		t.Error(got)
	}
}
