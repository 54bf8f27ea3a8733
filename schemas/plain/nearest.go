package plain

import "strings"

// mostEdits is the most edits by which a suggested word may differ from the unknown one.
const mostEdits = 3

// Nearest returns the word of words that is the fewest edits away from word, ignoring case,
// the kind of dashes, and the dashes or braces around it. It returns "" if none is near. A
// near word is at most three edits away, or at most one more than a third of the letters,
// whichever is less.
func Nearest(word string, words []string) string {
	word = bare(word)
	if len(word) > 40 {
		return ""
	}
	best, least := "", min(len(word)/3+1, mostEdits)
	for _, w := range words {
		if d := Distance(word, bare(w)); d <= least && (best == "" || d < least) {
			best, least = w, d
		}
	}
	return best
}

// Hint returns the end of a message about an unknown word: "; did you mean it?" with the
// nearest of words in place of "it", or "" if none is near.
func Hint(word string, words []string) string {
	if near := Suggest(word, words); near != "" {
		return "; " + near
	}
	return ""
}

// Suggest returns "did you mean it?" with the nearest of words in place of "it", or "" if none
// is near.
func Suggest(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// bare returns a word in lower case, without the dashes or braces that people add by habit,
// and without the extension of YAML.
func bare(s string) string {
	return strings.NewReplacer("-", "_", " ", "_", ".yaml", "", ".yml", "").Replace(strings.ToLower(strings.Trim(s, "-{} ")))
}

// Distance returns the number of insertions, deletions, replacements and swaps of neighbouring
// bytes that turn a into b (optimal string alignment). It compares only the first 64 bytes of
// a and of b.
func Distance(a, b string) int {
	const most = 64
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
