package pipelines

import (
	"strconv"
	"strings"
)

func lineOf(v value) string { return strconv.Itoa(at(v.place(), Problem{}).Line) }

// choose is the remedy for a word that is not among words.
func choose(word string, words []string) string {
	if near := nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	return "write one of " + strings.Join(words, ", ")
}

// Nearest returns the word that was most likely meant, or "" where none is
// near: for the command line, which says it of flags and commands.
func Nearest(word string, words []string) string { return nearest(word, words) }

// nearest returns the word that takes the fewest edits to become, ignoring
// case and the kind of dashes, or "" where none is near: more than a third of
// the letters would have to change.
func nearest(word string, words []string) string {
	word = plainWord(word)
	if len(word) > 40 {
		return ""
	}
	best, least := "", len(word)/3+1
	if least > 3 {
		least = 3
	}
	for _, w := range words {
		if d := distance(word, plainWord(w)); d <= least && (best == "" || d < least) {
			best, least = w, d
		}
	}
	return best
}

func plainWord(s string) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(s)))
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment).
func distance(a, b string) int {
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
