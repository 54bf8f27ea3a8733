package definition

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/transport"
)

func withKey(line string) string {
	return strings.Replace(minimal, "  timezone:", "  "+line+"\n  timezone:", 1)
}

func TestKeyReferences(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "keys", "good"), "\ufeff "+canary+"\r\n")
	write(t, filepath.Join(dir, "keys", "empty"), " \n")
	write(t, filepath.Join(dir, "keys", "long"), strings.Repeat(canary, 10_000))
	write(t, filepath.Join(dir, "keys", "two"), canary+"\n"+canary+"\n")
	for reference, want := range map[string]string{
		"${env:FORMETL_API_KEY}":                             "",
		"${file:keys/good}":                                  "",
		"${file:" + filepath.Join(dir, "keys", "good") + "}": "",
		"${env:UNSET}":                                       "the environment variable UNSET is not set",
		"${env:EMPTY}":                                       "the environment variable EMPTY is empty",
		"${env:TWO_LINES}":                                   "has more than one line",
		"${env:}":                                            "not a reference",
		"${env:not a name}":                                  "no valid name of an environment variable",
		"${file:}":                                           "not a reference",
		"${file:keys/none}":                                  "cannot be read: no such file",
		"${file:keys}":                                       "is a directory",
		"${file:/dev/zero}":                                  "longer than",
		"${file:keys/empty}":                                 "is empty",
		"${file:keys/long}":                                  "longer than",
		"${file:keys/two}":                                   "has more than one line",
		"${vault:secret/key}":                                "not a reference",
		"$FORMETL_API_KEY":                                   "not a reference",
		"env:FORMETL_API_KEY":                                "not a reference",
		"x${env:FORMETL_API_KEY}":                            "not a reference",
		"${env:FORMETL_API_KEY} ${env:FORMETL_API_KEY}": "not a reference",
		canary:                                 "the API key itself must not be in a definition",
		`""`:                                   "is missing",
		"":                                     "is missing",
		"[" + canary + "]":                     "is missing",
		"{" + canary + ": x}":                  "is missing",
		"|\n    " + canary + "\n    " + canary: "not a reference",
		"true":                                 "is missing",
		"12345678":                             "not a reference",
		"&k " + canary + "\n  requests: *k":    "not a reference",
	} {
		d, err := Parse(filepath.Join(dir, "p.yaml"), []byte(withKey("api_key: "+reference)), testOptions())
		if want == "" {
			if err != nil || d.Source.Key.From("") != transport.NewSecret(canary) {
				t.Errorf("%s: %v", reference, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p.yaml:6:") {
			t.Errorf("%q: got %v, want %s", reference, err, want)
			continue
		}
		noCanary(t, err)
	}
}

// noCanary fails if an error shows the key, however it is printed.
func noCanary(t *testing.T, err error) {
	t.Helper()
	shown := fmt.Sprintf("%v %+v %#v %q", err, err, err, err)
	if wrong, ok := err.(*Error); ok { //nolint:errorlint // the very error is printed
		shown += wrong.Error()
		for _, p := range wrong.Problems {
			shown += fmt.Sprintf("%+v %v", p, p)
		}
	}
	for _, form := range []string{canary, "CANARY", "k9-"} {
		if strings.Contains(shown, form) {
			t.Errorf("the error shows the key: %v", err)
			return
		}
	}
}

// A literal key can be written in the wrong place, under a wrong name or in
// broken YAML. Whatever the error is, it must not show it.
func TestNoErrorShowsTheKey(t *testing.T) {
	for _, text := range []string{
		withKey("api_key: " + canary),
		withKey(`api_key: "` + canary),
		withKey("api_key: " + canary + ": x"),
		withKey("api_key: {" + canary + "}"),
		withKey("api_key: @" + canary),
		withKey("api_key: *" + canary),
		withKey("api_key: !" + canary),
		withKey(`api_key: "\q` + canary + `"`),
		withKey("api_key " + canary),
		withKey("api_key\n  " + canary + ":"),
		withKey("apikey: " + canary),
		withKey("api_key: ${env:FORMETL_API_KEY}\n  api_key: " + canary),
		withKey("key: " + canary),
		withKey(canary + ": x"),
		withKey("{" + canary + "}"),
		withKey("<<: " + canary),
		withKey("timezone: UTC\n  api_key: |\n   " + canary + "\n   more"),
		withKey("requests: {concurrency: 0, api_key: " + canary + "}"),
		strings.Replace(minimal, "account: acme", "account: \"acme\n  api_key: "+canary+"\n  x: \"", 1),
		strings.Replace(minimal, "timezone: UTC", "timezone: |\n    Mars\n    api_key: "+canary, 1),
		strings.Replace(minimal, "source:", "source: "+canary+"\nx:", 1),
		strings.Replace(minimal, "source:", "source: {"+canary+"}\nx:", 1),
		strings.Replace(minimal, "https://fs1.example.com", "https://x/"+canary+"?"+canary, 1),
		strings.Replace(minimal, "https://fs1.example.com", "https://"+canary+"@%zz", 1),
		strings.Replace(minimal, "version: 1", "version: "+canary, 1),
		"%YAML " + canary + "\n---\n" + minimal,
		canary,
		"--- " + canary + "\n--- " + canary,
	} {
		for _, o := range []LoadOptions{{}, {WithoutSecrets: true}, {Formats: testFormats()}, testOptions()} {
			_, err := Parse("p.yaml", []byte(text), o)
			if err == nil {
				t.Errorf("accepted:\n%s", text)
				continue
			}
			noCanary(t, err)
		}
	}
}

// Where the key is known, it is cut out of every message, wherever the
// definition repeats it.
func TestKeyIsRedactedEverywhere(t *testing.T) {
	text := strings.Replace(minimal, "[form1]", "[\""+canary+"\", a:"+canary+"]", 1)
	text = strings.Replace(text, "UTC", canary, 1)
	_, err := Parse("p.yaml", []byte(text), testOptions())
	if err == nil || !strings.Contains(err.Error(), "[redacted]") {
		t.Fatalf("got %v", err)
	}
	noCanary(t, err)
}

func TestKeyWithoutAReference(t *testing.T) {
	o := testOptions()
	o.Lookup = nil
	_, err := Parse("p.yaml", []byte(minimal), o)
	if err == nil || !strings.Contains(err.Error(), "p.yaml:3:1: source: the definition has no api_key, and the environment variable FORMETL_API_KEY is not set; set it, or write api_key:") {
		t.Errorf("got %v", err)
	}
	o.WithoutSecrets = true
	if _, err := Parse("p.yaml", []byte(minimal), o); err != nil {
		t.Error(err)
	}
	if _, err := Parse("p.yaml", []byte(withKey("api_key: ${file:none}")), o); err != nil {
		t.Error(err)
	}
	if _, err := Parse("p.yaml", []byte(withKey("api_key: none")), o); err == nil {
		t.Error("without secrets the reference's form is still checked")
	}
}

func TestKeyOfTheCommandLineComesFirst(t *testing.T) {
	o := testOptions()
	o.Lookup = nil
	o.Key = transport.NewSecret("other")
	for _, text := range []string{minimal, withKey("api_key: ${env:UNSET}")} {
		d, err := Parse("p.yaml", []byte(text), o)
		if err != nil || d.Source.Key != o.Key {
			t.Errorf("%v", err)
		}
	}
}
