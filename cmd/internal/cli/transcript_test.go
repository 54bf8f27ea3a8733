package cli

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestTranscript goes the way of the README, with formserver in place of the service. The
// definition is the README's own, but for the address.
func TestTranscript(t *testing.T) {
	needs.Slow(t)
	root, err := filepath.Abs(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	definition := regexp.MustCompile("(?s)```yaml\n(version: 1\n.*?)```").FindSubmatch(readme)
	if definition == nil {
		t.Fatal("the README has no definition")
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "formserver"), "./cmd/formserver")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "transcript"),
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			_, port, err := net.SplitHostPort(listener.Addr().String())
			if err != nil {
				return err
			}
			if err := listener.Close(); err != nil {
				return err
			}
			e.Setenv("PORT", port)
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("FORMETL_API_KEY", testKey)
			e.Setenv("FORMSERVER_API_KEY", testKey)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			e.Setenv("TZ", "UTC")
			here := strings.ReplaceAll(string(definition[1]), "https://fs1.example.com", "http://127.0.0.1:"+port)
			hourly, err := os.ReadFile(filepath.Join(e.WorkDir, "hourly.yaml"))
			if err != nil {
				return err
			}
			for name, text := range map[string]string{"feedback.yaml": here, "hourly.yaml": strings.ReplaceAll(string(hourly), "$PORT", port)} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), []byte(text), 0o600); err != nil {
					return err
				}
			}
			return nil
		},
	})
}
