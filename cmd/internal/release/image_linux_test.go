package main

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestDockerfile has a linter judge the Dockerfiles, and a broken copy of one.
func TestDockerfile(t *testing.T) {
	needs.Slow(t)
	linter := needs.Program(t, "dockerfile-utils", "npm install dockerfile-utils")
	file := filepath.Join(moduleRoot, "cmd", "formetl", "Dockerfile")
	for _, file := range []string{file, filepath.Join(moduleRoot, "cmd", "formetl-worker", "Dockerfile")} {
		if out, err := output(t, linter, "lint", file); err != nil || out != "" {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
	broken := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(broken, []byte(strings.Replace(read(t, file), "ENTRYPOINT", "ENTRYPINT", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := output(t, linter, "lint", broken); err == nil && out == "" {
		t.Error("the linter accepts what is broken")
	}
}

// image is a folder that holds what the image of the Dockerfile would.
type image struct {
	t    *testing.T
	root string
	user uint32
	path string // of the program
}

// newImage carries out the last RUN of the Dockerfile's first stage, with a folder in
// place of /image. The second stage is that folder and nothing else.
func newImage(t *testing.T) image {
	t.Helper()
	needs.Long(t)
	if os.Geteuid() != 0 {
		needs.Missing(t, "the right to change the root folder", "run the tests as root")
	}
	shell := needs.Program(t, "sh", "any POSIX shell")
	text := read(t, filepath.Join(moduleRoot, "cmd", "formetl", "Dockerfile"))
	first, second, ok := strings.Cut(text, "\nFROM scratch\n")
	if !ok || !strings.Contains(second, "COPY --from=build /image /\n") || strings.Count(second, "COPY") != 1 {
		t.Fatal("the image does not begin empty, or holds more than the folder /image")
	}
	i := image{t: t, root: t.TempDir(), path: regexp.MustCompile(`ENTRYPOINT \["(.*)"\]`).FindStringSubmatch(second)[1]}
	i.user = uint32(numbers(t, regexp.MustCompile(`USER (\d+):`).FindStringSubmatch(second)[1])[0]) //nolint:gosec // a user of the test's choice
	script := strings.ReplaceAll(first[strings.LastIndex(first, "\nRUN ")+5:], "/image", i.root)
	cmd := exec.CommandContext(t.Context(), shell, "-e", "-c", script)
	cmd.Dir = moduleRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dir := range []string{i.root, filepath.Dir(i.root)} { // of the test alone until now
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the image's user reads it
			t.Fatal(err)
		}
	}
	return i
}

// run runs the program in the image, as the image's user, and gives its output.
func (i image) run(args ...string) string {
	i.t.Helper()
	cmd := exec.CommandContext(i.t.Context(), i.path, args...)
	cmd.Dir, cmd.Env = "/tmp", []string{"FORMETL_API_KEY=" + testKey}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: i.root, Credential: &syscall.Credential{Uid: i.user, Gid: i.user}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		i.t.Fatalf("formetl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestImage starts the program where nothing but the image's files is: it needs no
// library, no zone file, no home and no rights, and finds the certificates.
func TestImage(t *testing.T) {
	i := newImage(t)
	server := httptest.NewTLSServer(&formservice.Server{Key: testKey, Forms: []*formservice.Form{feedback()}})
	t.Cleanup(server.Close)
	authorities := filepath.Join(i.root, "etc", "ssl", "certs", "ca-certificates.crt")
	if bundle := read(t, authorities); strings.Count(bundle, "BEGIN CERTIFICATE") < 50 {
		t.Error("the image has no authorities")
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authorities, own, 0o600); err != nil { // the test server's alone
		t.Fatal(err)
	}
	if err := os.Chmod(authorities, 0o644); err != nil { //nolint:gosec // as in the image
		t.Fatal(err)
	}
	if out := i.run("--version"); !strings.HasPrefix(out, "formetl version ") {
		t.Errorf("got %q", out)
	}
	if out := i.run("demo", "--dir", "/tmp/demo"); !strings.Contains(out, "5,000 results read once") {
		t.Errorf("got %q", out)
	}
	definition := strings.ReplaceAll(read(t, filepath.Join(examples, "one-off.yaml")), "https://fs1.example.com", server.URL)
	if err := os.WriteFile(filepath.Join(i.root, "tmp", "one-off.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(i.root, "tmp", "one-off.yaml"), int(i.user), int(i.user)); err != nil {
		t.Fatal(err)
	}
	i.run("validate", "--strict", "/tmp/one-off.yaml")
	i.run("run", "/tmp/one-off.yaml")
	i.run("verify", "/tmp/one-off.yaml")
}
