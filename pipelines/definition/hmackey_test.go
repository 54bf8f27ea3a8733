package definition

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/schemas"
)

// hmacCanary is a key that no error may show.
const hmacCanary = "k9-HMAC-CANARY-0123456789"

// hashing is a schema with a hashed column, whose line 3 is given.
func hashing(line string) string {
	return "version: 1\nname: x\n" + line + "\ncolumns:\n  - {name: mail, from: \"item:1\", type: string, pii: hmac}\n"
}

func hmacLookup(name string) (string, bool) {
	text, set := map[string]string{
		HMACKeyVariable: " " + hmacCanary + "\n", "SHORT": "k9-HMAC-CANARY-", "OTHER": hmacCanary + "-other",
	}[name]
	return text, set
}

func hmacKeyOf(t *testing.T, text string) schemas.HMACKey {
	t.Helper()
	k, err := schemas.NewHMACKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestHMACKeyReferences(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "keys", "good"), "\ufeff"+hmacCanary+"\r\n")
	write(t, filepath.Join(dir, "keys", "short"), "k9-HMAC\n")
	for line, want := range map[string]string{
		"":                                  "", // the default variable
		"hmac_key: ${env:FORMETL_HMAC_KEY}": "",
		"hmac_key: ${file:keys/good}":       "",
		"hmac_key: ${file:" + filepath.Join(dir, "keys", "good") + "}": "",
		"hmac_key: ${env:UNSET}":                                          "x.yaml:3:11: hmac_key: the environment variable UNSET is not set",
		"hmac_key: ${env:SHORT}":                                          "x.yaml:3:11: hmac_key: the environment variable SHORT holds a key of 15 bytes, but pii: hmac needs at least 16",
		"hmac_key: ${file:keys/none}":                                     "x.yaml:3:11: hmac_key: the file " + filepath.Join(dir, "keys", "none") + " cannot be read",
		"hmac_key: ${file:keys/short}":                                    "a key of 7 bytes",
		"hmac_key: " + hmacCanary:                                         "x.yaml:3:11: hmac_key: the value is not a reference",
		"hmac_key: ${env:a b}":                                            "no valid name of an environment variable",
		"hmac_key: ${env:FORMETL_HMAC_KEY}\nempty: " + hmacCanary:         "empty",
		"hmac_key: ${env:FORMETL_HMAC_KEY}\n\"" + hmacCanary + "\": true": "is not known",
	} {
		file := filepath.Join(dir, "x.yaml")
		write(t, file, hashing(line))
		s, err := LoadSchema(file, &Secrets{Lookup: hmacLookup})
		if want == "" {
			if err != nil || s.HMACKey.ID() != hmacKeyOf(t, hmacCanary).ID() {
				t.Errorf("%q: %v", line, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", line, err, want)
			continue
		}
		noCanary(t, err)
	}
}

// TestHMACKeyByDefault: without a reference the problem stands at the first
// column that needs a key, and nobody asks where none does.
func TestHMACKeyByDefault(t *testing.T) {
	dir := t.TempDir()
	noVariables := func(string) (string, bool) { return "", false }
	file := filepath.Join(dir, "x.yaml")
	write(t, file, hashing("unknown: add"))
	_, err := LoadSchema(file, &Secrets{Lookup: noVariables})
	if err == nil || !strings.Contains(err.Error(), "x.yaml:5:") || !strings.Contains(err.Error(), "the environment variable FORMETL_HMAC_KEY is not set") {
		t.Errorf("got %v", err)
	}
	if s, err := LoadSchema(file, nil); err != nil || !s.HMACKey.IsZero() {
		t.Errorf("without secrets: %v", err)
	}
	write(t, file, strings.Replace(hashing("hmac_key: ${env:UNSET}"), "pii: hmac", "pii: redact", 1))
	if _, err := LoadSchema(file, &Secrets{Lookup: noVariables}); err != nil {
		t.Errorf("no column needs the key: %v", err)
	}
}

// TestHMACKeyOfDefinitions: inline, by columns: and by a schema file, whose
// references are relative to its own folder.
func TestHMACKeyOfDefinitions(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key"), hmacCanary+"-other\n")
	write(t, filepath.Join(dir, "schemas", "key"), hmacCanary+"\n")
	write(t, filepath.Join(dir, "schemas", "x.yaml"), hashing("hmac_key: ${file:key}"))
	write(t, filepath.Join(dir, "schemas", "bad.yaml"), hashing("hmac_key: ${file:none}"))
	const columns = "columns:\n  - {name: mail, from: \"item:1\", type: string, pii: hmac}\n"
	inline := func(key string) string {
		return minimal + "schema:\n  hmac_key: " + key + "\n  " + strings.ReplaceAll(columns, "\n  ", "\n    ")
	}
	for name, c := range map[string]struct{ text, key, want string }{
		"a schema file":     {minimal + "schema: schemas/x.yaml\n", hmacCanary, ""},
		"inline, a file":    {inline("${file:key}"), hmacCanary + "-other", ""},
		"inline":            {inline("${env:OTHER}"), hmacCanary + "-other", ""},
		"columns":           {minimal + columns, hmacCanary, ""},
		"a bad schema file": {minimal + "schema: schemas/bad.yaml\n", "", filepath.Join("schemas", "bad.yaml") + ":3:11: hmac_key: the file"},
		"inline, too short": {inline("${env:SHORT}"), "", ":13: schema.hmac_key: the environment variable SHORT holds a key of 15 bytes"},
	} {
		o := testOptions()
		key := o.Lookup
		o.Lookup = func(name string) (string, bool) {
			if name == KeyVariable {
				return key(name)
			}
			return hmacLookup(name)
		}
		d, err := Parse(filepath.Join(dir, "p.yaml"), []byte(c.text), o)
		switch {
		case c.want == "" && (err != nil || d.Schema.HMACKey.ID() != hmacKeyOf(t, c.key).ID()):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		case c.want != "":
			noCanary(t, err)
		}
		o.Lookup, o.WithoutSecrets = nil, true
		if d, err := Parse(filepath.Join(dir, "p.yaml"), []byte(c.text), o); err != nil || !d.Schema.HMACKey.IsZero() {
			t.Errorf("%s, without secrets: %v", name, err)
		}
	}
}
