package schemas

import "strings"

// nearestType names the known type that the writer most likely meant: by the
// names that other systems use, then by edit distance.
func nearestType(text string) string {
	name := strings.ToLower(text)
	if i := strings.IndexAny(name, "(<[ "); i > 0 {
		name = name[:i]
	}
	switch name {
	case "text", "varchar", "char", "str", "utf8", "nvarchar":
		return "string"
	case "int", "integer", "bigint", "long", "int32", "smallint", "int8":
		return "int64"
	case "float", "double", "real", "number", "float32":
		return "float64"
	case "boolean", "bit":
		return "bool"
	case "datetime", "timestamptz", "instant", "time":
		return "timestamp"
	case "numeric", "money", "decimal", "decimal128", "dec":
		return "decimal(12,2)"
	case "array", "list", "repeated", "set":
		return "list<string>"
	}
	candidates := []struct{ word, name string }{
		{"string", "string"},
		{"int64", "int64"},
		{"float64", "float64"},
		{"bool", "bool"},
		{"date", "date"},
		{"timestamp", "timestamp"},
		{"decimal", "decimal(12,2)"},
		{"list", "list<string>"},
	}
	best, least := "", -1
	for _, c := range candidates {
		if d := EditDistance(name, c.word); least < 0 || d < least {
			best, least = c.name, d
		}
	}
	return best
}

// EditDistance is the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b, in bytes (optimal string alignment). Words are
// cut at 64 bytes: nothing near a known name is longer.
func EditDistance(a, b string) int {
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
