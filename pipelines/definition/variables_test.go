package definition

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// withVars is a definition whose values have references.
const withVars = `version: 1
name: ${var:stage}-feedback
vars:
  stage: test
  bucket: ${env:BUCKET}
  width:
  quiet: true
source:
  base_url: https://${var:stage}.example.com
  account: ac${file:name}me
  api_key: ${env:KEY_${var:stage}}
  timezone: UTC
  allow_http: ${var:quiet}
  requests:
    concurrency: ${var:width}
forms: ["${var:stage}1", "costs$${x}"]
load:
  - path: s3://${var:bucket}/{form}.csv
`

func TestVariables(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "name"), " cl \n")
	environment := map[string]string{"BUCKET": "lake", "KEY_test": canary, "KEY_prod": "prod-" + canary}
	read := func(given map[string]string) (*Definition, error) {
		o := testOptions()
		o.Lookup = func(name string) (string, bool) { v, set := environment[name]; return v, set }
		o.Variables = given
		return Parse(filepath.Join(dir, "p.yaml"), []byte(withVars), o)
	}
	d, err := read(map[string]string{"width": "7"})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{d.Name, d.Source.BaseURL, d.Source.Account, d.Forms[0], d.Forms[1], d.Outputs[0].Path}
	if want := []string{"test-feedback", "https://test.example.com", "acclme", "test1", "costs${x}", "s3://lake/{form}.csv"}; !slices.Equal(got, want) {
		t.Errorf("%q instead of %q", got, want)
	}
	if d.Source.Requests.Concurrency != 7 || !d.Source.AllowHTTP || d.Source.Key.From("") != transport.NewSecret(canary) {
		t.Errorf("%d requests at once, HTTP %t", d.Source.Requests.Concurrency, d.Source.AllowHTTP)
	}
	if want := []string{"bucket", "quiet", "stage", "width"}; !slices.Equal(d.Variables, want) {
		t.Errorf("the variables are %q", d.Variables)
	}
	if d, err = read(map[string]string{"width": "7", "stage": "prod"}); err != nil || d.Name != "prod-feedback" || d.Source.Key.From("") != transport.NewSecret("prod-"+canary) {
		t.Errorf("of another stage: %+v, %v", d, err)
	}
	for given, want := range map[string]string{
		"":          `p.yaml:15:18: source.requests.concurrency: the variable "width" has no value; add --var width=VALUE to the command, or a default under vars:`,
		"width=x":   `"x" is not a whole number in the range`,
		"width=999": "write a whole number from 1 to 256",
	} {
		name, value, ok := strings.Cut(given, "=")
		variables := map[string]string{}
		if ok {
			variables[name] = value
		}
		if _, err := read(variables); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "p.yaml:") != 1 {
			t.Errorf("%q: %v, not once %s", given, err, want)
		}
	}
}

// A reference brings the key into no other value.
func TestKeyStaysInItsPlace(t *testing.T) {
	text := strings.Replace(minimal, "path: out", "path: out/${env:"+KeyVariable+"}", 1)
	_, err := Parse("p.yaml", []byte(text), testOptions())
	if err == nil || !strings.Contains(err.Error(), "load[0].path: this value would contain the API key") {
		t.Fatalf("the error is %v", err)
	}
	noCanary(t, err)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	o := testOptions()
	o.WithoutSecrets = true // as validate and doctor
	for _, key := range []string{"api_key: ${file:" + file + "}", "api_key: ${env:OTHER}"} {
		text := strings.NewReplacer("timezone: UTC", "timezone: ${file:"+file+"}\n  "+key).Replace(minimal)
		_, err := Parse("p.yaml", []byte(text), o)
		if err == nil || !strings.Contains(err.Error(), `"[redacted]" is not a time zone`) {
			t.Fatalf("the error is %v", err)
		}
		noCanary(t, err)
	}
	text = strings.Replace(minimal, "name: p", "name: ${env:"+KeyVariable+"}", 1)
	if _, err := Parse("p.yaml", []byte(text), o); err == nil || !strings.Contains(err.Error(), "name: this value would contain the API key") {
		t.Fatalf("the error is %v", err)
	}
}

// Each reference that cannot be followed is one problem at its place.
func TestBadReferences(t *testing.T) {
	for value, want := range map[string]string{
		"${var:none}":              `the variable "none" has no value`,
		"${var:stages}":            "did you mean stage?",
		"${env:UNSET}":             "the environment variable UNSET is not set; set it, or use ${var:NAME}, with a default under vars:",
		"${file:none}":             "cannot be read",
		"${cmd:echo x}":            "is for secrets only",
		"${vault:x}":               "${vault:…} is not a kind of reference",
		"${vars:stage}":            "did you mean var?",
		"a${env:HOME":              "has no closing brace",
		"${env:A_${var:stage}":     "has no closing brace",
		"${env:A_${var:nothing}}":  `the variable "nothing" has no value`,
		"${env:PLACE}/../${env:X}": "the environment variable X is not set",
	} {
		text := strings.Replace(minimal, "load:", "vars: {stage: test}\nload:", 1)
		text = strings.Replace(text, "path: ", "path: '"+value+".csv' #", 1)
		_, err := Parse(filepath.Join(t.TempDir(), "p.yaml"), []byte(text), testOptions())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "load[0].path: ") {
			t.Errorf("%s: %v has no %s", value, err, want)
		}
	}
	for vars, want := range map[string]string{
		"{a-b: 1}":                `"a-b" is not the name of a variable`,
		"{a: 1, b: \"${var:a}\"}": "a variable cannot refer to another variable",
		"{a: [1]}":                "text is expected, not a list",
		"{a: 1, a: 2}":            "is defined twice",
		"[a]":                     "a group of keys is expected",
	} {
		_, err := Parse("p.yaml", []byte(minimal+"vars: "+vars+"\n"), testOptions())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("vars: %s: %v has no %s", vars, err, want)
		}
	}
}

// A command prints the key, and what it prints stands in no error.
func TestCommandOfAKey(t *testing.T) {
	needs.Program(t, "cat", "apt-get install coreutils")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key"), canary+"\n")
	for line, want := range map[string]string{
		"cat key":                          "",
		"cat key | tr -d ' '":              "",
		"cat key; exit 3":                  "exit status 3",
		"cat key key":                      "has more than one line",
		"true":                             "is empty",
		"no-such-command-anywhere":         "exit status 127",
		"yes " + canary:                    "the command failed",
		"echo " + canary + " >&2; exit 1":  "run it by hand to see why",
		"cat /dev/zero | head -c 10000000": "the command failed",
	} {
		o := testOptions()
		o.Command = func(dir, line string) (string, error) { return RunCommand(t.Context(), dir, line) }
		d, err := Parse(filepath.Join(dir, "p.yaml"), []byte(withKey("api_key: ${cmd:"+line+"}")), o)
		if want == "" {
			if err != nil || d.Source.Key.From("") != transport.NewSecret(canary) {
				t.Errorf("%s: %v", line, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p.yaml:6:") {
			t.Errorf("%s: %v has no %s", line, err, want)
			continue
		}
		noCanary(t, err)
	}
	d, err := Parse("p.yaml", []byte(withKey("api_key: ${cmd:exit 1}")), testOptions())
	if err != nil || !d.Source.Key.IsZero() {
		t.Errorf("a command that is not run gives %v", err)
	}
}
