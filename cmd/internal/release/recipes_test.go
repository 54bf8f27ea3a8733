package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// check runs a recipe's tool, which must accept the recipe without a word and refuse a
// broken copy. broken is an old text of the recipe and the new one.
func check(t *testing.T, recipe string, broken [2]string, run func(t *testing.T, file string) (string, error)) {
	t.Helper()
	if out, err := run(t, filepath.Join(recipes, recipe)); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("%s: %v\n%s", recipe, err, out)
	}
	text := read(t, filepath.Join(recipes, recipe))
	if !strings.Contains(text, broken[0]) {
		t.Fatalf("%s lacks %q", recipe, broken[0])
	}
	file := filepath.Join(t.TempDir(), recipe)
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, broken[0], broken[1])), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, file); err == nil && strings.TrimSpace(out) == "" {
		t.Errorf("%s is accepted with %q", recipe, broken[1])
	}
}

// output runs a program and gives all that it printed.
func output(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return string(out), err
}

func TestCrontab(t *testing.T) {
	crontab := needs.Program(t, "crontab", "apt-get install cron")
	check(t, "crontab", [2]string{"17 * * * *", "77 * * * *"}, func(t *testing.T, file string) (string, error) {
		out, err := output(t, crontab, "-n", file)
		return strings.TrimPrefix(out, "The syntax of the crontab file was successfully checked.\n"), err
	})
}

// TestUnits has systemd read both units. The program's path is that of this test, since
// systemd wants one that is there.
func TestUnits(t *testing.T) {
	analyze := needs.Program(t, "systemd-analyze", "apt-get install systemd")
	here, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for unit, broken := range map[string][2]string{
		"formetl@.service": {"ProtectSystem=strict", "ProtectSystem=strictest"},
		"formetl@.timer":   {"OnCalendar=*:17", "OnCalendar=*:77"},
	} {
		check(t, unit, broken, func(t *testing.T, file string) (string, error) {
			dir := t.TempDir()
			for _, name := range []string{"formetl@.service", "formetl@.timer"} {
				source := filepath.Join(recipes, name)
				if name == unit {
					source = file
				}
				text := strings.ReplaceAll(read(t, source), "/usr/local/bin/formetl", here)
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return output(t, analyze, "verify", "--man=no", filepath.Join(dir, strings.Replace(unit, "@.", "@hourly-s3.", 1)))
		})
	}
	// 20 of 100 is well below what systemd calls exposed.
	if out, err := output(t, analyze, "security", "--no-pager", "--offline=true", "--threshold=20", filepath.Join(recipes, "formetl@.service")); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWorkflow(t *testing.T) {
	actionlint := needs.Program(t, "actionlint", "go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12")
	check(t, "github-workflow.yml", [2]string{"secrets.FORMETL_API_KEY", "secret.FORMETL_API_KEY"}, func(t *testing.T, file string) (string, error) {
		return output(t, actionlint, "-no-color", file)
	})
	for _, name := range []string{"ci.yml", "release.yml"} { // the project's own
		if out, err := output(t, actionlint, "-no-color", filepath.Join(moduleRoot, ".github", "workflows", name)); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestJobs has TypeScript compare the jobs with types that are generated from Kubernetes' own
// OpenAPI schema. They know each key and each word.
func TestJobs(t *testing.T) {
	tsc := needs.Program(t, "tsc", "npm install typescript kubernetes-models")
	real, err := filepath.EvalSymlinks(tsc)
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(filepath.Dir(real), "..", "..")
	if _, err := os.Stat(filepath.Join(modules, "kubernetes-models")); err != nil {
		needs.Missing(t, "kubernetes-models", "npm install typescript kubernetes-models in one folder")
	}
	run := func(t *testing.T, file string) (string, error) {
		t.Helper()
		var job any
		if err := yaml.Unmarshal([]byte(read(t, file)), &job); err != nil {
			t.Fatal(err)
		}
		literal, err := json.MarshalIndent(job, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(dir, "check.ts")
		kind := job.(map[string]any)["kind"].(string)
		text := fmt.Sprintf("import type { I%s } from \"kubernetes-models/batch/v1/%s\";\nexport const job: I%s = %s;\n", kind, kind, kind, literal)
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return output(t, tsc, "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", source)
	}
	check(t, "cronjob.yaml", [2]string{"readOnlyRootFilesystem", "readOnlyRootFileSystem"}, run)
	check(t, "indexed-job.yaml", [2]string{"backoffLimitPerIndex", "backoffLimitByIndex"}, run)
}

// TestAlerts has Prometheus read the rules, and try them on metrics of several hours.
func TestAlerts(t *testing.T) {
	promtool := needs.Program(t, "promtool", "apt-get install prometheus")
	check(t, "alerts.yml", [2]string{"max by (pipeline, form)", "max by (pipeline, form"}, func(t *testing.T, file string) (string, error) {
		out, err := output(t, promtool, "check", "rules", file)
		return strings.TrimPrefix(out, "Checking "+file+"\n  SUCCESS: 5 rules found\n"), err
	})
	rules, err := filepath.Abs(filepath.Join(recipes, "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	tests := filepath.Join(t.TempDir(), "alerts_test.yml")
	if err := os.WriteFile(tests, []byte(strings.ReplaceAll(read(t, "testdata/alerts_test.yml"), "RULES", rules)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := output(t, promtool, "test", "rules", tests); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestJobsFitTheirDefinition checks what no schema says: the rules of Kubernetes for a
// podFailurePolicy, and that the definition finds what it needs in the pod. The form of an
// Indexed Job's pod comes from a file.
func TestJobsFitTheirDefinition(t *testing.T) {
	for recipe, own := range map[string][]string{
		"cronjob.yaml":     {"concurrencyPolicy: Forbid ", "run, /etc/formetl/hourly-s3.yaml,"},
		"indexed-job.yaml": {"completionMode: Indexed\n", "run, /etc/formetl/by-index.yaml,", "mountPath: /run/formetl/form, subPathExpr: $(JOB_COMPLETION_INDEX),"},
	} {
		job := read(t, filepath.Join(recipes, recipe))
		for _, text := range append(own, "restartPolicy: Never ", "runAsNonRoot: true", "containerName: formetl\n", "- name: formetl\n",
			"mountPath: /tmp}", "--api-key-file, /run/secrets/formetl/key,", "mountPath: /run/secrets/formetl,", "--metrics, /metrics/formetl", "mountPath: /metrics}") {
			if !strings.Contains(job, text) {
				t.Errorf("%s lacks %q", recipe, text)
			}
		}
	}
	definition := read(t, filepath.Join(examples, "hourly-s3.yaml"))
	if !strings.Contains(definition, "state: s3://") {
		t.Error("the definition's state is in no bucket")
	}
	w := newExamples(t)
	byIndex := w.example("all-forms.yaml", `forms: ["*"]`, `forms: ["${file:form}"]`, `exclude: [test-*, sandbox]`, "")
	w.write("form", "orders\n")
	same(t, w.rows(byIndex), map[string]int64{"orders": 3})
}

// TestDocumentationShowsTheRecipes holds that what scheduling.md shows of a recipe is in
// it, line by line, and that it links to each.
func TestDocumentationShowsTheRecipes(t *testing.T) {
	docs := read(t, filepath.Join(moduleRoot, "pipelines", "scheduling.md"))
	files, err := os.ReadDir(recipes)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		if !strings.Contains(docs, "(examples/recipes/"+file.Name()+")") {
			t.Errorf("scheduling.md does not link to %s", file.Name())
		}
		for line := range strings.Lines(read(t, filepath.Join(recipes, file.Name()))) {
			all.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	blocks := regexp.MustCompile("(?s)```(?:text|ini|yaml|python)\n(.*?)```").FindAllStringSubmatch(docs, -1)
	if len(blocks) < 3 {
		t.Errorf("scheduling.md shows only %d pieces", len(blocks))
	}
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			if !strings.Contains(all.String(), strings.TrimSpace(line)+"\n") {
				t.Errorf("no recipe has %q", strings.TrimSpace(line))
			}
		}
	}
}
