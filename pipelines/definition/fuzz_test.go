package definition

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/transport"
)

// FuzzDefinition holds for every input: no panic, a Error with a
// place for each problem, no key in it, and a definition that is complete.
func FuzzDefinition(f *testing.F) {
	for _, text := range []string{minimal, fullDefinition, contractSchema, withKey("api_key: " + canary), withKey("api_key: {" + canary)} {
		f.Add([]byte(text))
	}
	for _, c := range slices.Concat(badTop(), badSource(), badExtract(), badSchema(), badLoad()) {
		f.Add([]byte(strings.Replace(minimal, c.old, c.new, 1)))
	}
	for _, from := range []string{"item:", "''", "items:1", "id"} {
		f.Add([]byte("version: 1\ncolumns: [{name: a, from: " + from + ", type: decimal}, {name: b, from: result_id, type: date}]\n"))
	}
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	o := testOptions()
	o.Key = transport.NewSecret(canary) // so that no file or variable that the input names is read for it
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse("/nowhere/p.yaml", data, o)
		checkOutcome(t, err, d == nil)
		if err == nil && (d.Name == "" || d.Source.BaseURL == "" || d.Source.Account == "" || d.Source.Zone == nil || len(d.Forms) == 0 || len(d.Outputs) == 0) {
			t.Errorf("a definition with holes: %+v", d)
		}
		s, err := parseSchema("/nowhere/s.yaml", data)
		checkOutcome(t, err, s == nil)
		if err == nil {
			if err := s.Validate(); err != nil {
				t.Errorf("a schema that is not valid: %v", err)
			}
		}
	})
}

func checkOutcome(t *testing.T, err error, nothing bool) {
	t.Helper()
	if (err != nil) != nothing {
		t.Fatalf("an error and a value, or neither: %v", err)
	}
	if err == nil {
		return
	}
	var wrong *Error
	if !errors.As(err, &wrong) || len(wrong.Problems) == 0 {
		t.Fatalf("not a Error: %v", err)
	}
	for _, p := range wrong.Problems {
		if p.Line < 1 || p.Column < 1 || p.Message == "" || p.Remedy == "" {
			t.Errorf("a problem without a place, a message or a remedy: %+v", p)
		}
	}
	if strings.Contains(wrong.Error(), canary) {
		t.Errorf("the error shows the key: %s", wrong.Error())
	}
}
