package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
)

// folder is what lies below a folder, to be damaged.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) get(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(f.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return data
}

func (f folder) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.path(name)), 0o750), os.WriteFile(f.path(name), data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (f folder) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(f.path(name)); err != nil {
		t.Fatal(err)
	}
}

// verifyWorld is a dataset that runs wrote, and its service.
type verifyWorld struct {
	*testing.T
	folder
	form    *formservice.Form
	service *formservice.Server
	file    string // the definition
	do      func(args ...string) (code int, stdout, stderr string)
}

func (w *verifyWorld) manifest() *load.Manifest {
	w.Helper()
	m, err := load.DecodeManifest(w.get(w.T, load.ManifestName))
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// must runs a command that has to end with 0.
func (w *verifyWorld) must(args ...string) {
	w.Helper()
	if code, _, stderr := w.do(args...); code != 0 {
		w.Fatalf("%v ends with %d: %s", args, code, stderr)
	}
}

// changed changes a part: its bytes become those that change returns.
func (w *verifyWorld) changed(at int, change func(data []byte) []byte) {
	w.Helper()
	p := w.manifest().Parts[at]
	w.put(w.T, p.Path, change(w.get(w.T, p.Path)))
}

// flipped changes a byte of a part.
func (w *verifyWorld) flipped(at int) {
	w.Helper()
	w.changed(at, func(data []byte) []byte {
		data[len(data)/2] ^= 1
		return data
	})
}

// fixed verifies a damaged dataset, runs the commands that are named, and verifies again.
func (w *verifyWorld) fixed(kinds ...string) {
	w.Helper()
	w.service.Reset()
	code, stdout, stderr := w.do("verify", w.file, "--json")
	if n := len(w.service.Log()); n != 0 {
		w.Errorf("%d requests were sent", n)
	}
	var told struct {
		Sound   bool
		Outputs []struct {
			Sound    bool
			Problems []struct{ Kind string }
			Commands []string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || len(told.Outputs) != 1 {
		w.Fatalf("%d, %v: %s%s", code, err, stdout, stderr)
	}
	got := make([]string, 0, len(kinds))
	for _, p := range told.Outputs[0].Problems {
		got = append(got, p.Kind)
	}
	if code != console.ExitData || told.Sound || told.Outputs[0].Sound || !slices.Equal(got, kinds) || !strings.Contains(stderr, "hint: run the commands that stand after \"to fix it\"; then") {
		w.Fatalf("it ends with %d and finds %q, not %q: %s%s", code, got, kinds, stdout, stderr)
	}
	for _, command := range told.Outputs[0].Commands {
		w.must(strings.Fields(strings.TrimPrefix(command, "formetl "))...)
	}
	if code, stdout, stderr := w.do("verify", w.file); code != console.ExitOK || !strings.Contains(stdout, ": ok\n") {
		w.Errorf("after %q it ends with %d: %s%s", told.Outputs[0].Commands, code, stdout, stderr)
	}
}

const verifiedDefinition = `forms: [form1]
extract: {from: 2026-01-01, to: 2026-04-01}
load:
  - path: %PATH%
    format: %FORMAT%
    partition: month
`

func verifiedForm() *formservice.Form {
	return formservice.Generate(formservice.GenerateOptions{
		Directory: "form1", Results: 250, Seed: 9, Items: 6,
		From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
	})
}

func verifiedWorld(t *testing.T) *verifyWorld {
	t.Helper()
	w := &verifyWorld{T: t, form: verifiedForm()}
	service, server := newService(testKey, w.form)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	w.service, w.folder = service, folder(filepath.Join(dir, "lake", "form1"))
	text := strings.NewReplacer("%PATH%", "lake/{form}/", "%FORMAT%", "parquet").Replace(verifiedDefinition)
	w.file = pipelineFile(t, dir, "verified", server.URL, "", text)
	w.do = func(args ...string) (int, string, string) { return inProcess(testKey, args...) }
	w.must("run", w.file)
	return w
}

// TestVerify: the commands that verify names fix what is damaged, and it asks the service
// for nothing. Each kind of damage is a case of pipelines/upkeep.
func TestVerify(t *testing.T) {
	w := verifiedWorld(t)
	w.remove(t, w.manifest().Parts[0].Path)
	w.flipped(2)
	w.fixed("missing", "sha256")
	w.remove(t, load.SuccessName)
	w.fixed("manifest")
	w.remove(t, load.ManifestName)
	w.fixed("manifest")
	w.put(t, load.ManifestName, []byte("{"))
	if code, _, stderr := w.do("run", w.file); code != console.ExitCantCreate || !strings.Contains(stderr, "read everything again with `formetl run "+w.file+" --full`") {
		t.Errorf("a run beside a damaged manifest ends with %d: %s", code, stderr)
	}
	w.fixed("manifest")
	w.put(t, "dt=2026-01-01/part-20260101T000000-20260102T000000-000009-0000.ndjson", nil)
	w.fixed("unlisted")
}

// TestProposalsRepeatFlags: the commands that verify, state show and a run propose mean the
// same definition, state folder and forms as the command that proposes them.
func TestProposalsRepeatFlags(t *testing.T) {
	w := verifiedWorld(t)
	text, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(w.file), "staged.yaml")
	if err := os.WriteFile(file, bytes.Replace(text, []byte("lake/"), []byte("lake/${var:stage}/"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	given := []string{"--var", "stage=the test", "--state", filepath.Join(t.TempDir(), "state")}
	quoted := " " + file + " --var 'stage=the test' --state " + given[3]
	w.must(append([]string{"run", file}, given...)...)
	w.folder = folder(filepath.Join(filepath.Dir(file), "lake", "the test", "form1"))
	part := w.manifest().Parts[0]
	w.put(t, strings.Replace(part.Path, "-0000.", "-0077.", 1), w.get(t, part.Path))
	w.remove(t, part.Path)
	for name, c := range map[string]struct {
		args []string
		code int
		told []string
	}{
		"verify": {[]string{"verify", file}, console.ExitData, []string{"formetl run" + quoted + " --from 2026-01-01T00:00:00 --to 2026-02-01T00:00:00\n"}},
		"state":  {[]string{"state", "show", file}, console.ExitOK, []string{"`formetl clean" + quoted + " --unlisted`"}},
		"run":    {[]string{"run", file}, console.ExitCantCreate, []string{"`formetl run" + quoted + " --full`", "`formetl clean" + quoted + " --unlisted`"}},
	} {
		code, stdout, stderr := w.do(append(c.args, given...)...)
		for _, want := range c.told {
			if code != c.code || !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s ends with %d, and %q is missing: %s%s", name, code, want, stdout, stderr)
			}
		}
	}
}

// TestVerifyAgainstService: with --against-service a result that was deleted or added at
// the service is found in its window, at a request for each window.
func TestVerifyAgainstService(t *testing.T) {
	w := verifiedWorld(t)
	windows := len(w.manifest().Parts)
	check := func(want int, kinds string) string {
		t.Helper()
		w.service.Reset()
		code, stdout, stderr := w.do("verify", w.file, "--against-service")
		if code != want || !strings.Contains(stdout, kinds) {
			t.Fatalf("it ends with %d: %s%s", code, stdout, stderr)
		}
		if n := len(w.service.Log()); n != windows {
			t.Errorf("%d requests for %d windows", n, windows)
		}
		return stdout
	}
	check(console.ExitOK, ": ok")
	m := w.manifest()
	w.form.Delete(m.Parts[0].MinID)
	told := check(console.ExitData, "count")
	if !strings.Contains(told, m.Parts[0].Path) || strings.Contains(told, m.Parts[1].Path) {
		t.Errorf("another part is named: %s", told)
	}
	w.must("run", w.file)
	check(console.ExitOK, ": ok")
	result, ok := w.form.Get(m.Parts[1].MinID)
	if !ok {
		t.Fatal("no such result")
	}
	result.ID = 0
	if _, err := w.form.Insert(result); err != nil {
		t.Fatal(err)
	}
	check(console.ExitData, "count")
	if code, _, stderr := w.do("verify", filepath.Dir(w.file)+"/lake/form1", "--against-service"); code != console.ExitUsage {
		t.Errorf("a path ends with %d: %s", code, stderr)
	}
}
