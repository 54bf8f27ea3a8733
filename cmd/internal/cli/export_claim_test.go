package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/output"
)

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestTake: a file is somebody else's unless the last export left it so, or was killed.
func TestTake(t *testing.T) {
	const other = "oth"
	for _, c := range []struct {
		name    string
		last    func(t *testing.T, claim *claim) // how the last export ended; nil if there was none
		there   string                           // what lies at the path now; "" for nothing
		force   bool
		foreign bool
	}{
		{name: "nothing is there"},
		{name: "somebody's file", there: other, foreign: true},
		{name: "somebody's file, by force", there: other, force: true},
		{name: "written", last: wrote, there: own},
		{name: "written and removed", last: wrote},
		{name: "written and changed", last: wrote, there: other, foreign: true},
		{name: "written and longer now", last: wrote, there: own + other, foreign: true},
		{name: "killed", last: func(*testing.T, *claim) {}, there: other},
		{name: "failed", last: endFailed, there: other, foreign: true},
		{name: "written and failed", last: func(t *testing.T, c *claim) {
			wrote(t, c)
			again, err := takeFile(t.Context(), c.state, c.before.Path, false)
			if err != nil {
				t.Fatal(err)
			}
			endFailed(t, again)
		}, there: own},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, path := t.TempDir(), filepath.Join(t.TempDir(), "form1.csv")
			if c.last != nil {
				claim, err := takeFile(t.Context(), stateIn(t, state), path, false)
				if err != nil {
					t.Fatal(err)
				}
				c.last(t, claim)
			}
			if c.there != "" {
				if err := os.WriteFile(path, []byte(c.there), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := takeFile(t.Context(), stateIn(t, state), path, c.force)
			if (console.ExitCode(err) == console.ExitCantCreate) != c.foreign || err != nil && !c.foreign {
				t.Errorf("%v", err)
			}
		})
	}
}

func stateIn(t *testing.T, folder string) checkpoint.State {
	t.Helper()
	d, err := local.NewState(folder)
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint.NewState(d, folder)
}

// own is what exports write in these tests.
const own = "own"

func wrote(t *testing.T, c *claim) {
	t.Helper()
	if err := os.WriteFile(c.before.Path, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	out := output.Report{Path: c.before.Path, Bytes: int64(len(own)), SHA256: sumOf(own)}
	if err := (claims{c}).End(t.Context(), &pipelines.Report{Forms: []*pipelines.FormReport{{Outputs: []output.Report{out}}}}); err != nil {
		t.Fatal(err)
	}
}

func endFailed(t *testing.T, c *claim) {
	t.Helper()
	if err := (claims{c}).End(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}
