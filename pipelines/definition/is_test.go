package definition_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/pipelines/definition"
)

// TestIsDefinition tells definitions and schema files apart by their keys.
func TestIsDefinition(t *testing.T) {
	for text, want := range map[string]bool{
		"version: 1\nname: x\nsource: {}\nforms: [a]\n":     true,
		"version: 1\ncolumns: []\nload: []\n":               true,
		"version: 1\ncolumns: []\n":                         false,
		"version: 1\nunknown: fail\nname: source\n":         false,
		"version: 1\n# source: is a comment\ncolumns: []\n": false,
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := definition.Is(file); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := definition.Is(filepath.Join(t.TempDir(), "missing.yaml")); err == nil {
		t.Error("a file that is not there is something")
	}
}
