package output

import (
	"cmp"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// ruleOf returns a column's pii rule as manifests spell it. An hmac rule includes
// the id of its key, because hashes by different keys cannot be compared.
func ruleOf(c schemas.Column, key schemas.HMACKey) string {
	if c.PII.Kind == schemas.PIIHMAC && !key.IsZero() {
		return hmacRule + "(" + key.ID() + ")"
	}
	return c.PII.String()
}

const hmacRule = "hmac"

// sameRule tells whether two rules are the same. An hmac rule without a key,
// for which no secret was read, equals an hmac rule with any key.
func sameRule(was, is string) bool {
	return was == is || is == hmacRule && strings.HasPrefix(was, hmacRule+"(")
}

// checkRules returns an error if the schema has another pii rule for a
// committed column. Older parts would show what the new rule hides, or hold
// hashes unlike the new ones.
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

// described returns a rule as text for people.
func described(rule string) string {
	if rule == "" {
		return "written as it comes"
	}
	return "pii: " + rule
}

// The manifest of a CSV dataset holds its profile and the way it shows lists,
// because all its parts are read together.

// strictProfile is the default CSV profile. Manifests leave it out.
const strictProfile = "strict"

// profileRule returns a CSV profile as manifests spell it.
func profileRule(profile string) string {
	if profile == strictProfile {
		return ""
	}
	return profile
}

// listRule returns how a column shows lists, as manifests spell it. It returns
// "" for joined lists and for formats that show lists in only one way.
func listRule(c schemas.Column) string {
	if c.ListAs == schemas.ListJoined {
		return ""
	}
	return string(c.ListAs)
}

// checkLists returns an error if the schema shows a list in CSV in another way
// than the older parts. Those would have other columns or other text.
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

// columnFrom returns the schema's column from a source. ok is false without one.
func columnFrom(s *schemas.Schema, source string) (c schemas.Column, ok bool) {
	from, err := schemas.ParseSource(source)
	if at := s.Find(from); err == nil && at >= 0 {
		return s.Columns[at], true
	}
	return c, false
}
