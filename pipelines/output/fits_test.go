package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// ruled is a schema with one column from item 1 under a rule.
func ruled(t *testing.T, unknown schemas.Unknown, rule string, key schemas.HMACKey) *schemas.Schema {
	t.Helper()
	s := &schemas.Schema{Name: "x", Unknown: unknown, HMACKey: key}
	if rule == "-" {
		return s
	}
	c := schemas.Column{Name: "mail", From: schemas.Source{Kind: schemas.FromItem, ID: "1"}, Type: schemas.Type{Kind: schemas.String}}
	if rule != "" {
		var err error
		if c.PII, err = schemas.ParsePII(rule); err != nil {
			t.Fatal(err)
		}
	}
	s.Columns = append(s.Columns, c)
	return s
}

// TestCheckRules: a committed column keeps its rule and its key; "-" is no
// column.
func TestCheckRules(t *testing.T) {
	one, other := hmacKeyOf(t, hmacCanary), hmacKeyOf(t, hmacCanary+"-other")
	hashed := "hmac(" + one.ID() + ")"
	for _, c := range []struct {
		was, is string
		key     schemas.HMACKey
		unknown schemas.Unknown
		refused bool
	}{
		{was: "", is: ""},
		{was: "redact", is: "redact"},
		{was: "truncate(3)", is: "truncate(3)"},
		{was: hashed, is: "hmac", key: one},
		{was: hashed, is: "hmac"}, // no secret was asked for
		{was: "", is: "-"},
		{was: "redact", is: "-", unknown: schemas.UnknownIgnore},
		{was: "redact", is: "-", unknown: schemas.UnknownFail},

		{was: "", is: "hmac", key: one, refused: true},
		{was: "", is: "redact", refused: true},
		{was: "", is: "drop", refused: true},
		{was: hashed, is: "drop", refused: true},
		{was: hashed, is: "", refused: true},
		{was: hashed, is: "hmac", key: other, refused: true},
		{was: hashed, is: "redact", refused: true},
		{was: "redact", is: "hmac", refused: true},
		{was: "truncate(3)", is: "truncate(4)", refused: true},
		{was: "redact", is: "-", unknown: schemas.UnknownAdd, refused: true}, // it would be written unprotected
		{was: "redact", is: "-", refused: true},
	} {
		err := newPlace(&Job{Def: &definition.Definition{}}, definition.Output{}).checkRules([]load.Column{{Name: "mail", Type: "string", From: "item:1", PII: c.was}}, ruled(t, c.unknown, c.is, c.key))
		if (err != nil) != c.refused {
			t.Errorf("was %q, is %q (%s): %v", c.was, c.is, c.unknown, err)
		}
		if fault, _ := errors.AsType[*definition.Fault](err); c.refused && (fault == nil || !strings.Contains(fault.Text, "column mail was ") || !strings.Contains(fault.Cure, "--full")) {
			t.Errorf("was %q, is %q: %v", c.was, c.is, err)
		}
	}
}

// TestFingerprintsKnowRules: what a run with another rule or key left is of no
// use; the key itself is in none.
func TestFingerprintsKnowRules(t *testing.T) {
	seen, manifests := map[string]bool{}, map[string]bool{}
	for _, s := range []*schemas.Schema{
		ruled(t, "", "", schemas.HMACKey{}), ruled(t, "", "drop", schemas.HMACKey{}), ruled(t, "", "redact", schemas.HMACKey{}),
		ruled(t, "", "truncate(3)", schemas.HMACKey{}), ruled(t, "", "truncate(4)", schemas.HMACKey{}),
		ruled(t, "", "hmac", hmacKeyOf(t, hmacCanary)), ruled(t, "", "hmac", hmacKeyOf(t, hmacCanary+"-other")),
	} {
		data, err := json.Marshal(s)
		if err != nil || seen[string(data)] || strings.Contains(string(data), "CANARY") {
			t.Errorf("%s (%v)", data, err)
		}
		seen[string(data)] = true
		columns := fmt.Sprint(manifestColumns(s.Columns, s.HMACKey))
		if manifests[columns] {
			t.Errorf("the columns of %s are told as other ones", data)
		}
		manifests[columns] = true
	}
}

// hmacCanary is the text of a key.
const hmacCanary = "k9-HMAC-CANARY-0123456789"

func hmacKeyOf(t *testing.T, text string) schemas.HMACKey {
	t.Helper()
	k, err := schemas.NewHMACKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}
