package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines/definition"
)

// TestTemporal holds that Temporal's own variables are heard, that a key brings TLS, and that what
// cannot be read is wrong usage.
func TestTemporal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("temporal-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env, address, namespace string
		tls, key                bool
		problem                 string
	}{
		{"", "localhost:7233", "default", false, false, ""},
		{"TEMPORAL_ADDRESS=a:1 TEMPORAL_NAMESPACE=n", "a:1", "n", false, false, ""},
		{"TEMPORAL_API_KEY=k", "localhost:7233", "default", true, true, ""},
		{"TEMPORAL_TLS=true", "localhost:7233", "default", true, false, ""},
		{"TEMPORAL_TLS=false", "localhost:7233", "default", false, false, ""},
		{"TEMPORAL_TLS_SERVER_NAME=x", "localhost:7233", "default", true, false, ""},
		{"TEMPORAL_CONFIG_FILE=" + file, "", "", false, false, "cannot be read"},
		{"TEMPORAL_TLS_CLIENT_CERT_PATH=/none", "", "", false, false, "cert or key path"},
		{"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + file, "", "", false, false, "CA"},
	} {
		variables := map[string]string{}
		for _, v := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(v, "=")
			variables[name] = value
		}
		p := process{lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }}
		o, err := p.temporal()
		if c.problem != "" {
			if err == nil || console.ExitCode(err) != console.ExitUsage || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%q: %v", c.env, err)
			}
			continue
		}
		if err != nil || o.HostPort != c.address || o.Namespace != c.namespace || (o.ConnectionOptions.TLS != nil) != c.tls || (o.Credentials != nil) != c.key {
			t.Errorf("%q: %+v, %v", c.env, o, err)
		}
	}
}

// TestFolder holds that no definition is read that lies elsewhere.
func TestFolder(t *testing.T) {
	p := process{folder: t.TempDir()}
	for _, path := range []string{"../a.yaml", "/etc/passwd", "a/../../b.yaml", ""} {
		if _, err := p.load(Source{Path: path}, definition.LoadOptions{}); console.ExitCode(err) != console.ExitConfig || !strings.Contains(err.Error(), "--definitions") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
