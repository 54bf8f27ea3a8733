//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/formetl/formetl/cmd/internal/console"
)

// TestOnlyFilesAreReplaced: neither an export, by force too, nor a run, a report or a schema
// takes the place of a pipe, a device or a link. Nothing is asked of the service before.
func TestOnlyFilesAreReplaced(t *testing.T) {
	service, server := newService(testKey, smallForm())
	t.Cleanup(server.Close)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		syscall.Mkfifo(at("pipe.csv"), 0o600), os.WriteFile(at("mine.csv"), []byte("mine"), 0o600), os.Symlink("mine.csv", at("link.csv")),
		os.Symlink("nothing.csv", at("dangling.csv")), os.Symlink("/proc/self/fd/1", at("out.csv")),
		syscall.Mkfifo(at("m.csv.manifest.json"), 0o600), syscall.Mkfifo(at("r.csv.rejects.jsonl"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	problems := map[string]string{ // by the output's name
		"pipe.csv": "pipe.csv: it is no ordinary file", "link.csv": "it is a link to mine.csv", "dangling.csv": "it is a link to nothing.csv",
		"out.csv": "it is a link to /proc/self/fd/1", "m.csv": "m.csv.manifest.json: it is no ordinary file", "r.csv": "r.csv.rejects.jsonl: it is no ordinary file",
	}
	if syscall.Mknod(at("device.csv"), syscall.S_IFCHR|0o600, 1<<8|3) == nil { // root alone may
		problems["device.csv"] = "it is no ordinary file"
	}
	from := []string{"--base-url", server.URL, "--account", "acme", "--timezone", "America/Chicago", "--form", "form1"}
	for name, problem := range problems {
		beside := name == "m.csv" || name == "r.csv"
		before, _ := os.Lstat(at(name))
		file := pipelineFile(t, dir, "p", server.URL, "", "forms: [form1]\nload: [{path: "+name+"}]")
		commands := [][]string{{"run", file}, append([]string{"export", "-o", at(name), "--force", "--select", "result_id", "--state", at("state")}, from...)}
		if !beside {
			commands = append(commands, append([]string{"schema", "infer", "-o", at(name), "--force"}, from...),
				append([]string{"export", "-o", at("else.csv"), "--state", at("state"), "--report", at(name)}, from...))
		}
		for i, args := range commands {
			service.Reset()
			code, _, told := inProcess(testKey, args...)
			if code != console.ExitCantCreate || !strings.Contains(told, problem) {
				t.Errorf("%v ends with %d: %s", args, code, told)
			}
			if resolved := i == 1 && beside; len(service.Log()) != 0 && !resolved { // --select asks before what lies beside is looked at
				t.Errorf("%v sent %d requests", args, len(service.Log()))
			}
		}
		if after, _ := os.Lstat(at(name)); !beside && !os.SameFile(before, after) {
			t.Errorf("%s was replaced", name)
		}
	}
	if data, err := os.ReadFile(at("mine.csv")); err != nil || string(data) != "mine" {
		t.Errorf("the link's file holds %q, %v", data, err)
	}
}

// TestForeignFiles: a run says once, before the first request, that it replaces a file that no
// run wrote. What a run wrote is replaced without a word.
func TestForeignFiles(t *testing.T) {
	_, server := newService(testKey, smallForm())
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write(t, dir, "mine.csv", "mine")
	file := pipelineFile(t, dir, "p", server.URL, "", "forms: [form1]\nload: [{path: mine.csv}, {path: new.csv}]")
	do := func(want int, foreign bool, args ...string) {
		t.Helper()
		code, _, told := inProcess(testKey, args...)
		says := strings.Count(told, "no manifest of formetl lies")
		if foreign && (says != 1 || !strings.Contains(told, "mine.csv")) || !foreign && says != 0 || code != want {
			t.Errorf("%v ends with %d: %s", args, code, told)
		}
		if strings.Contains(told, "msg=planned") && foreign && strings.Index(told, "msg=planned") < strings.Index(told, "no manifest") {
			t.Errorf("it is told too late: %s", told)
		}
	}
	do(console.ExitOK, true, "run", file)
	do(console.ExitOK, false, "run", file)
}
