package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/built"
	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestShareable: a definition that several workers cannot run is refused, with the reason.
func TestShareable(t *testing.T) {
	for _, c := range []struct{ rest, says string }{
		{"checkpoint: destination\nload: [{path: lake/, format: csv}]\n", ""},
		{"load: [{path: lake/, format: csv}]\n", "write `checkpoint: destination`"},
		{"checkpoint: destination\nload: [{path: \"runs/{run_id}/\", format: csv}]\n", "write a path without {run_id}"},
		{"checkpoint: destination\nload: [{database: postgres, dsn: \"postgres://me@db/x\", table: forms.feedback}]\n", ""},
	} {
		file := filepath.Join(t.TempDir(), "feedback.yaml")
		text := "version: 1\nname: feedback\nsource: {base_url: \"https://fs1.example.com\", account: acme, api_key: \"${env:KEY}\", timezone: UTC}\nforms: [form1]\n" + c.rest
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := built.Checks(t.Context(), func(string) (string, bool) { return "secret", true })
		def, err := definition.Load(file, o)
		if err != nil {
			t.Fatal(err)
		}
		err = shareable(def)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.rest, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || exit.Code(err) != exit.Config):
			t.Errorf("%s: got %v with code %d, want one that says %q", c.rest, err, exit.Code(err), c.says)
		}
	}
}
