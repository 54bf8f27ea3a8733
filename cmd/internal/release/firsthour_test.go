package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// TestFirstHour types what the README's section about a pipeline shows, from the clone to
// the line for cron, and then runs that line as cron does. Only the test service's port is
// another one, and crontab checks the table and leaves the user's own alone.
func TestFirstHour(t *testing.T) {
	needs.Slow(t)
	bash := needs.Program(t, "bash", "apt-get install bash")
	needs.Program(t, "crontab", "apt-get install cron")
	_, section, _ := strings.Cut(read(t, filepath.Join(moduleRoot, "README.md")), "\n## A pipeline that runs every hour\n")
	section, _, _ = strings.Cut(section, "\n## ")
	port, err := needs.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	section = strings.NewReplacer("127.0.0.1:8420", "127.0.0.1:"+port, "formserver --api-key-file", "formserver --addr 127.0.0.1:"+port+" --api-key-file").Replace(section)

	home := t.TempDir()
	script := "set -e\ncrontab() { [ \"$1\" = -l ] || { cat >~/crontab; command crontab -n ~/crontab; }; }\ntrap 'kill $(jobs -p)' EXIT\n"
	for _, block := range regexp.MustCompile("(?s)```(bash|yaml)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		if block[1] == "yaml" {
			script += "cat >~/forms/feedback.yaml <<'END'\n" + block[2] + "END\n"
		} else {
			script += block[2]
		}
	}
	// What cron gives a command: https://manpages.debian.org/bookworm/cron/crontab.5.en.html
	script += `sed 's/^17 \* \* \* \* //' ~/crontab | env -i HOME="$HOME" LOGNAME=somebody PATH=/usr/bin:/bin SHELL=/bin/sh /bin/sh -e` + "\n"

	cmd := exec.CommandContext(t.Context(), bash, "-c", script)
	cmd.Dir = moduleRoot
	cmd.Env = append(os.Environ(), "HOME="+home, "GOPATH="+filepath.Join(home, "go"), "GOBIN=",
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, output := range []string{"out", "lake"} {
		var manifest struct {
			Rows     int
			Verified struct{ Match bool }
		}
		if err := json.Unmarshal([]byte(read(t, filepath.Join(home, "forms", output, "feedback", "_manifest.json"))), &manifest); err != nil {
			t.Fatal(err)
		}
		if manifest.Rows != 10_000 || !manifest.Verified.Match {
			t.Errorf("%s: %+v\n%s", output, manifest, out)
		}
	}
	if log := read(t, filepath.Join(home, "forms", "feedback.log")); !strings.Contains(log, `"msg":"run finished"`) || !strings.Contains(log, `"rows":0,`) {
		t.Errorf("the run by cron wrote %s", log)
	}
	if !regexp.MustCompile(`msg="run finished".* rows=0 .* requests=2 `).Match(out) {
		t.Errorf("the second run did not end after two requests:\n%s", out)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := output(t, "go", "env", name)
	if err != nil {
		t.Fatal(err, out)
	}
	return strings.TrimSpace(out)
}
