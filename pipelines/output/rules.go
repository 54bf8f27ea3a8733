package output

import (
	"cmp"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// ruleOf is a column's pii rule as manifests spell it. An hmac rule has the id of
// its key, because hashes of two keys cannot be compared.
func ruleOf(c schemas.Column, key schemas.HMACKey) string {
	if c.PII.Kind == schemas.PIIHMAC && !key.IsZero() {
		return hmacRule + "(" + key.ID() + ")"
	}
	return c.PII.String()
}

const hmacRule = "hmac"

// sameRule tells whether two rules are the same. Where no secret was asked for, an
// hmac rule has no key, and equals that of any key.
func sameRule(was, is string) bool {
	return was == is || is == hmacRule && strings.HasPrefix(was, hmacRule+"(")
}

// checkRules refuses a schema with another pii rule for a committed column. Its
// older parts would still show what the new rule hides, or hold hashes that equal
// none of the new ones.
func checkRules(path string, committed []load.Column, s *schemas.Schema) error {
	for _, was := range committed {
		is, same := "not in the schema", was.PII == "" || s.Unknown == schemas.UnknownIgnore || s.Unknown == schemas.UnknownFail
		if now, ok := columnFrom(s, was.From); ok {
			rule := ruleOf(now, s.HMACKey)
			is, same = described(rule), sameRule(was.PII, rule)
		}
		if !same {
			return &SchemaChangedError{
				Path: path, Column: was.Name, Was: described(was.PII), Is: is,
				Why: "the older parts hold its values as they were written",
			}
		}
	}
	return nil
}

// described is a rule for people.
func described(rule string) string {
	if rule == "" {
		return "written as it comes"
	}
	return "pii: " + rule
}

// The manifest of a CSV dataset holds its profile and how it shows lists, because
// its parts are read together.

// strictProfile is the CSV profile that manifests do not name.
const strictProfile = "strict"

// profileRule is a CSV profile as manifests spell it.
func profileRule(profile string) string {
	if profile == strictProfile {
		return ""
	}
	return profile
}

// listRule is how a column shows lists, as manifests spell it: "" for joined, and
// for formats that show lists in one way.
func listRule(c schemas.Column) string {
	if c.ListAs == schemas.ListJoined {
		return ""
	}
	return string(c.ListAs)
}

// checkLists refuses a schema that shows a list in CSV otherwise than the older
// parts do: they have other columns, or another text.
func checkLists(path string, committed []load.Column, s *schemas.Schema) error {
	for _, was := range committed {
		now, ok := columnFrom(s, was.From)
		if is := listRule(now); ok && is != was.ListAs {
			describe := func(rule string) string { return "list_as: " + cmp.Or(rule, string(schemas.ListJoined)) }
			return &SchemaChangedError{Path: path, Column: was.Name, Was: describe(was.ListAs), Is: describe(is)}
		}
	}
	return nil
}

// columnFrom is the schema's column from a source as manifests spell it.
func columnFrom(s *schemas.Schema, source string) (c schemas.Column, ok bool) {
	from, err := schemas.ParseSource(source)
	if at := s.Find(from); err == nil && at >= 0 {
		return s.Columns[at], true
	}
	return c, false
}
