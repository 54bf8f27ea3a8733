package pipelines_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/pipelines/output"
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
	oneKey   = "one key of sixteen bytes and more"
	otherKey = "another key of sixteen bytes and more"
)

// TestRuleOfACommittedColumn: a dataset whose older parts were written by
// another rule or key is not gone on with, by run or plan, and stays as it
// was; --full replaces it, and a single file is written anew anyway.
func TestRuleOfACommittedColumn(t *testing.T) {
	for _, c := range []struct{ was, wasKey, is, isKey string }{
		{"", "", "hmac", oneKey},
		{"", "", "drop", ""},
		{"hmac", oneKey, "hmac", otherKey},
		{"hmac", oneKey, "", ""},
		{"redact", "", "drop", ""},
		{"truncate(1)", "", "truncate(2)", ""},
	} {
		t.Run(c.was+" to "+c.is, func(t *testing.T) {
			w := newWorld(t, fourDays())
			def := w.daily(days())
			def.Schema = private(t, c.was, c.wasKey)
			w.run(def)
			w.run(def) // again, by the same rule
			before := tree(t, w.dir)
			def.Schema = private(t, c.is, c.isKey)
			var changed *output.SchemaChangedError
			if _, err := pipelines.Run(t.Context(), def, options()); !errors.As(err, &changed) || changed.Column != "answer" {
				t.Fatalf("run: %v", err)
			}
			if _, err := pipelines.MakePlan(t.Context(), def, options().Options, false); !errors.As(err, &changed) {
				t.Errorf("plan: %v", err)
			}
			sameTree(t, before, tree(t, w.dir))
			o := options()
			o.Full = true
			if _, err := pipelines.Run(t.Context(), def, o); err != nil {
				t.Fatal(err)
			}
			w.run(def)

			def = w.daily(file())
			def.Schema = private(t, c.was, c.wasKey)
			w.run(def)
			def.Schema = private(t, c.is, c.isKey)
			w.run(def)
		})
	}
}

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
		known, err := infer.KnownColumns(t.Context(), def, options().Options, "form1")
		if err != nil || known.Schema.Find(schemas.Source{Kind: schemas.FromItem, ID: "1"}) < 0 {
			t.Errorf("%s: the known columns are %+v (%v)", rule, known, err)
		}
	}
}

// TestRuleOfAnInterruptedRun: what a run with another rule or key left in its
// checkpoint is not taken over.
func TestRuleOfAnInterruptedRun(t *testing.T) {
	for _, c := range []struct {
		name, was, wasKey, is, isKey string
		resumes                      bool
	}{
		{"the same", "hmac", oneKey, "hmac", oneKey, true},
		{"a key", "hmac", oneKey, "hmac", otherKey, false},
		{"a rule", "", "", "hmac", oneKey, false},
		{"dropped", "", "", "drop", "", false},
	} {
		for kind, out := range map[string]definition.Output{"file": file(), "dataset": days()} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				r := newDeclared(t)
				def := r.daily(out)
				def.Schema = private(t, c.was, c.wasKey)
				r.stopAt(def, "read", 3)
				def.Schema = private(t, c.is, c.isKey)
				asked, _ := r.asked(def)
				if resumes := len(asked) < 4; resumes != c.resumes {
					t.Errorf("asked for %v", asked)
				}
				if c.was != c.is {
					for name, data := range tree(t, r.dir) {
						if strings.HasSuffix(name, ".ndjson") && bytes.Contains([]byte(data), []byte(`"answer":"a"`)) {
							t.Errorf("%s holds a value as it was: %s", name, data)
						}
					}
				}
			})
		}
	}
}

// TestHashesAreOfTheValue: equal values give equal hashes in every output and
// run, and other keys give others.
func TestHashesAreOfTheValue(t *testing.T) {
	hashes := func(key string) map[string]string {
		w := newWorld(t, fourDays())
		def := w.daily(file())
		def.Schema = private(t, "hmac", key)
		w.run(def)
		all := map[string]string{}
		for line := range strings.Lines(tree(t, w.dir)["form1.ndjson"]) {
			var row struct {
				ID     json.Number `json:"id"`
				Answer string      `json:"answer"`
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil || len(row.Answer) != 64 {
				t.Fatalf("%s: %v", line, err)
			}
			all[row.ID.String()] = row.Answer
		}
		return all
	}
	first, again, other := hashes(oneKey), hashes(oneKey), hashes(otherKey)
	if len(first) != 8 {
		t.Fatalf("%d rows", len(first))
	}
	for id, h := range first {
		if again[id] != h || other[id] == h {
			t.Errorf("result %s: %s, again %s, by another key %s", id, h, again[id], other[id])
		}
	}
}
