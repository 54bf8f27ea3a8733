package schemas

import (
	"strings"

	"github.com/formetl/formetl/schemas/nearest"
)

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
		if d := nearest.Distance(name, c.word); least < 0 || d < least {
			best, least = c.name, d
		}
	}
	return best
}
