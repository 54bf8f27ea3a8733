package output

import (
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/schemas"
)

// ruleOf is a column's pii rule as manifests tell it: of hmac with the id of
// its key, so that hashes of two keys are not taken for comparable.
func ruleOf(c schemas.Column, key schemas.HMACKey) string {
	if c.PII.Kind == schemas.PIIHMAC && !key.IsZero() {
		return hmacRule + "(" + key.ID() + ")"
	}
	return c.PII.String()
}

const hmacRule = "hmac"

// sameRule tells whether two rules are one. A rule whose key is not known,
// because no secret was asked for, is that of any key.
func sameRule(was, is string) bool {
	return was == is || is == hmacRule && strings.HasPrefix(was, hmacRule+"(")
}

// checkRules refuses a schema that treats a committed column's values
// otherwise than its older parts do. Those would go on showing what a new rule
// hides, or hold hashes that equal none of the new ones.
func checkRules(path string, committed []load.Column, s *schemas.Schema) error {
	places := s.Places()
	for _, was := range committed {
		is, same := "not in the schema", was.PII == "" || s.Unknown == schemas.UnknownIgnore || s.Unknown == schemas.UnknownFail
		if from, err := schemas.ParseSource(was.From); err == nil {
			if at, ok := places[from]; ok {
				rule := ruleOf(s.Columns[at], s.HMACKey)
				is, same = described(rule), sameRule(was.PII, rule)
			}
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
