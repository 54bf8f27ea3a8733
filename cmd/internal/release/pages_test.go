package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/cmd/internal/cli"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// written are the files of a release, and the folder that they are in.
func written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := run([]string{dir, "1767225600"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPages holds that each command has a page with its options, and that the date is
// the one that was given.
func TestPages(t *testing.T) {
	man := filepath.Join(written(t), "man")
	for _, c := range cli.Commands().Commands() {
		if c.Name() == "help" || c.Hidden {
			continue
		}
		page := read(t, filepath.Join(man, "formetl-"+c.Name()+".1"))
		for _, part := range []string{`.TH "FORMETL-` + strings.ToUpper(c.Name()) + `" "1" "Jan 2026"`, ".SH OPTIONS", c.Short} {
			if !strings.Contains(strings.ReplaceAll(page, `\-`, "-"), part) {
				t.Errorf("the page of %s lacks %q", c.Name(), part)
			}
		}
	}
	if page := read(t, filepath.Join(man, "formetl-export.1")); !strings.Contains(page, "item_<id>") {
		t.Error("the page of export lacks item_<id>")
	}
	if err := run([]string{man, "today"}); err == nil {
		t.Error("a date that is none is taken")
	}
}

// TestPagesAreReadable has the reader of manual pages judge each page.
func TestPagesAreReadable(t *testing.T) {
	groff := needs.Program(t, "groff", "apt-get install groff-base")
	pages, err := filepath.Glob(filepath.Join(written(t), "man", "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatal(len(pages), err)
	}
	for _, page := range pages {
		cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-z", "-ww", page)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestShellsReadTheirCompletions has each shell check the syntax of its file.
func TestShellsReadTheirCompletions(t *testing.T) {
	dir := filepath.Join(written(t), "completions")
	for name, c := range map[string]struct{ program, flag string }{
		"formetl.bash": {"bash", "-n"},
		"_formetl":     {"zsh", "-n"},
		"formetl.fish": {"fish", "--no-execute"},
	} {
		t.Run(c.program, func(t *testing.T) {
			shell := needs.Program(t, c.program, "apt-get install "+c.program)
			if out, err := exec.CommandContext(t.Context(), shell, c.flag, filepath.Join(dir, name)).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if text := read(t, filepath.Join(dir, "formetl.ps1")); !strings.Contains(text, "Register-ArgumentCompleter") {
		t.Error("PowerShell's file registers nothing")
	}
}

// TestFlagsAgree holds that whatever builds a release builds it the same way.
func TestFlagsAgree(t *testing.T) {
	const flags = `-trimpath -tags arrow_json_stdlib -ldflags "-s -w"`
	root := filepath.Join("..", "..", "..")
	for _, file := range []string{".ci/run", "cmd/README.md", "cmd/formetl/Dockerfile", "cmd/formetl-worker/Dockerfile"} {
		if !strings.Contains(read(t, filepath.Join(root, file)), "go build "+flags+" -o ") {
			t.Errorf("%s does not build with %s", file, flags)
		}
	}
	for _, line := range []string{"flags: [-trimpath,", "tags: [arrow_json_stdlib]", `ldflags: ["-s -w"]`, "env: [CGO_ENABLED=0]"} {
		if !strings.Contains(read(t, filepath.Join(root, ".goreleaser.yaml")), line) {
			t.Errorf(".goreleaser.yaml lacks %s", line)
		}
	}
}
