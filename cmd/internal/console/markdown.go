package console

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// tableRule is the line below the head of a table.
var tableRule = regexp.MustCompile(`^[|: -]+$`)

// Markdown returns a page of the documentation for a terminal of so many columns: code set
// apart, tables aligned, and headings between bold and plain. Each paragraph, item
// and row of the page is one line.
func Markdown(page string, columns int, bold, plain string) string {
	page = strings.ReplaceAll(page, "**", "")
	const bar = "\ue000" // an escaped | of a table
	var b strings.Builder
	var rows [][]string
	code := false
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, "|") && !code {
			if !tableRule.MatchString(line) {
				rows = append(rows, strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, bar), "|"), "|"))
			}
			continue
		}
		b.WriteString(strings.ReplaceAll(Columns("", fitted(rows, columns)), bar, "|"))
		rows = nil
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
		case code:
			b.WriteString("    " + line + "\n")
		case strings.HasPrefix(line, "#"):
			b.WriteString(bold + strings.TrimLeft(line, "# ") + plain + "\n")
		case strings.HasPrefix(line, "- "):
			b.WriteString(strings.Join(wrapped(line, columns-2), "\n  ") + "\n")
		default:
			b.WriteString(strings.Join(wrapped(line, columns), "\n") + "\n")
		}
	}
	return b.String()
}

// fitted wraps the cells of a table so that it is as wide as so many columns: a row becomes several.
func fitted(rows [][]string, columns int) (fit [][]string) {
	widths := make([]int, 0, 4)
	for _, row := range rows {
		widths = append(widths, make([]int, max(0, len(row)-len(widths)))...)
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(strings.TrimSpace(cell)))
		}
	}
	excess := -2 - columns
	for _, width := range widths {
		excess += width + 2
	}
	for ; excess > 0; excess-- {
		widths[slices.Index(widths, slices.Max(widths))]--
	}
	for _, row := range rows {
		first := len(fit)
		for i, cell := range row {
			for n, line := range wrapped(cell, widths[i]) {
				if first+n == len(fit) {
					fit = append(fit, make([]string, len(row)))
				}
				fit[first+n][i] = line
			}
		}
	}
	return fit
}

// wrapped divides a text into lines of at most so many columns. A longer word has a line of its own.
func wrapped(text string, columns int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > columns {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
