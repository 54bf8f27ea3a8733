package cli

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/cmd/internal/flags"
	"github.com/formetl/formetl/cmd/internal/telemetry"
)

// TestColumnSourceReadsTheKeyOnce: of many forms whose columns are asked of the
// service, only the first makes the definition be read with its key.
func TestColumnSourceReadsTheKeyOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	content := "version: 1\nname: p\nsource: {base_url: \"https://fs1.example.com\", account: a, api_key: \"${env:FORMETL_API_KEY}\", timezone: UTC}\nforms: [f, g]\nload: [{format: csv, path: \"out/{form}.csv\"}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { return "the key", name == "FORMETL_API_KEY" }
	p := &process{stdout: io.Discard, stderr: io.Discard, lookup: lookup, log: telemetry.NewLog(io.Discard, nil)}
	defs, err := p.load(t.Context(), &flags.Definition{}, []string{file}, withoutKey)
	if err != nil {
		t.Fatal(err)
	}
	s := &columnSource{process: p, file: file, def: defs[0]}
	if !s.def.Source.Key.IsZero() {
		t.Fatal("the key is read before it is needed")
	}
	if err := s.withKey(t.Context()); err != nil || s.def.Source.Key.IsZero() {
		t.Fatalf("there is no key: %v", err)
	}
	read := s.def
	if err := s.withKey(t.Context()); err != nil || s.def != read {
		t.Errorf("the definition is read again: %v", err)
	}
}
