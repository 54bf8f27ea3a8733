package pipelines_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines/upkeep"
	"github.com/formetl/formetl/schemas"
)

// private is a schema whose column from item 1 has a rule.
func private(t *testing.T, rule, key string) *schemas.Schema {
	t.Helper()
	s := declared(t, schemas.UnknownIgnore, "", "string")
	if rule == "" {
		return s
	}
	at := s.Find(schemas.Source{Kind: schemas.FromItem, ID: "1"})
	var err error
	if s.Columns[at].PII, err = schemas.ParsePII(rule); err != nil {
		t.Fatal(err)
	}
	if s.Needs(schemas.PIIHMAC) {
		if s.HMACKey, err = schemas.NewHMACKey([]byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

const (
	oneKey = "one key of sixteen bytes and more"
)

// TestRulesInManifests: a column's rule stands there, what is dropped does
// not, and Parquet's footers say the same.
func TestRulesInManifests(t *testing.T) {
	key := private(t, "hmac", oneKey).HMACKey
	for rule, want := range map[string]string{"": "", "redact": "redact", "truncate(3)": "truncate(3)", "hmac": "hmac(" + key.ID() + ")", "drop": "none"} {
		w := newWorld(t, fourDays())
		def := w.daily(days(), file())
		def.Schema = private(t, rule, oneKey)
		w.run(def)
		for _, name := range []string{filepath.Join("days", load.ManifestName), load.FileManifestName("form1.ndjson")} {
			got := "none"
			for _, c := range readManifest(t, w.path(name)).Schema {
				if c.From == "item:1" {
					got = c.PII
				}
			}
			if got != want {
				t.Errorf("%s in %s: %q, want %q", rule, name, got, want)
			}
		}
		for name, data := range tree(t, w.dir) {
			if strings.Contains(data, oneKey) || want == "none" && strings.HasSuffix(name, ".ndjson") && strings.Contains(data, `"answer"`) {
				t.Errorf("%s: %s", name, data)
			}
		}
		known, err := upkeep.KnownColumns(t.Context(), def, options().Options, "form1")
		if err != nil || known.Schema.Find(schemas.Source{Kind: schemas.FromItem, ID: "1"}) < 0 {
			t.Errorf("%s: the known columns are %+v (%v)", rule, known, err)
		}
	}
}
