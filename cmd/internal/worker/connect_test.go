package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/formetl/formetl/cmd/internal/exit"
)

// TestConnection holds that flags come before Temporal's variables, that a key brings TLS, and
// that what cannot be read is wrong usage.
func TestConnection(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("temporal-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, env, address, namespace string
		tls, key                      bool
		problem                       string
	}{
		{"", "", "localhost:7233", "default", false, false, ""},
		{"", "TEMPORAL_ADDRESS=a:1 TEMPORAL_NAMESPACE=n", "a:1", "n", false, false, ""},
		{"--address b:2 --namespace m", "TEMPORAL_ADDRESS=a:1 TEMPORAL_NAMESPACE=n", "b:2", "m", false, false, ""},
		{"", "TEMPORAL_API_KEY=k", "localhost:7233", "default", true, true, ""},
		{"--temporal-api-key-file " + key, "", "localhost:7233", "default", true, true, ""},
		{"", "TEMPORAL_TLS=true", "localhost:7233", "default", true, false, ""},
		{"", "TEMPORAL_TLS=false", "localhost:7233", "default", false, false, ""},
		{"", "TEMPORAL_TLS_SERVER_NAME=x", "localhost:7233", "default", true, false, ""},
		{"", "TEMPORAL_CONFIG_FILE=" + key, "", "", false, false, "cannot be read"},
		{"", "TEMPORAL_TLS_CLIENT_CERT_PATH=/none", "", "", false, false, "cert or key path"},
		{"", "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + key, "", "", false, false, "CA"},
		{"--temporal-api-key-file /none", "", "", "", false, false, "--temporal-api-key-file"},
	} {
		variables := map[string]string{}
		for _, v := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(v, "=")
			variables[name] = value
		}
		f := connection{lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }}
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.register(set)
		if err := set.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		o, err := f.options()
		if c.problem != "" {
			if err == nil || exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%q %q: %v", c.args, c.env, err)
			}
			continue
		}
		if err != nil || o.HostPort != c.address || o.Namespace != c.namespace || (o.ConnectionOptions.TLS != nil) != c.tls || (o.Credentials != nil) != c.key {
			t.Errorf("%q %q: %+v, %v", c.args, c.env, o, err)
		}
	}
}

// TestRelative holds which definitions lie in the folder of the workers.
func TestRelative(t *testing.T) {
	dir := t.TempDir()
	for file, want := range map[string]string{
		filepath.Join(dir, "a.yaml"): "a.yaml", filepath.Join(dir, "b", "..", "c", "a.yaml"): "c/a.yaml",
		filepath.Join(dir, "..", "a.yaml"): "", filepath.Join(dir, "c", "..", "..", "x", "a.yaml"): "",
	} {
		got, err := relative(dir, file)
		if got != want || (err != nil) != (want == "") || err != nil && exit.Code(err) != exit.Usage {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	a := &Activities{Folder: dir}
	for _, path := range []string{"../a.yaml", "/etc/passwd", "a/../../b.yaml", ""} {
		if _, err := a.definition(t.Context(), Source{Path: path}, &progress{}); exit.Code(err) != exit.Config {
			t.Errorf("%q: %v", path, err)
		}
	}
}
