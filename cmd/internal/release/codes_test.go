package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/formetl/formetl/load/loadtest/needs"
)

// exitCodes are the codes of the documentation's table: those after which a scheduler
// runs again, and those that want a person.
func exitCodes(t *testing.T) (again, person []int) {
	t.Helper()
	table := read(t, filepath.Join(moduleRoot, "pipelines", "exit-codes.md"))
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+(?:, \d+)*) \|.*\| ([a-z ]+) \|$`).FindAllStringSubmatch(table, -1) {
		codes := numbers(t, row[1])
		switch row[2] {
		case "go on":
		case "run again":
			again = append(again, codes...)
		default:
			person = append(person, codes...)
		}
	}
	if len(again) < 3 || len(person) < 9 {
		t.Fatalf("the table has only %v and %v", again, person)
	}
	slices.Sort(again)
	slices.Sort(person)
	return again, person
}

// numbers are the whole numbers of a text.
func numbers(t *testing.T, text string) (all []int) {
	t.Helper()
	for _, digits := range regexp.MustCompile(`\d+`).FindAllString(text, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// TestRecipesKnowTheExitCodes compares what each recipe does after an exit code with the
// documentation's table.
func TestRecipesKnowTheExitCodes(t *testing.T) {
	again, person := exitCodes(t)
	stopped := []int{129, 130, 143}
	for _, c := range []struct {
		file, pattern string
		want          []int
	}{
		{"crontab", `0\|([0-9|]+)\) ;;`, again},
		{"formetl@.service", `RestartPreventExitStatus=(.*)`, person},
		{"formetl@.service", `SuccessExitStatus=(.*)`, stopped},
		{"cronjob.yaml", `values: \[(.*)\]`, person},
		{"indexed-job.yaml", `(?s)values: (\[77\].*values: \[.*\])\n  template`, person},
		{"airflow_dag.py", `RUN_AGAIN = \{(.*)\}`, again},
		{"dagster_assets.py", `RUN_AGAIN = \{(.*)\}`, again},
		{"github-workflow.yml", `(?m)^ *([0-9 |]+)\) echo`, again},
	} {
		found := regexp.MustCompile(c.pattern).FindStringSubmatch(read(t, filepath.Join(recipes, c.file)))
		if found == nil {
			t.Errorf("%s lacks %s", c.file, c.pattern)
			continue
		}
		got := numbers(t, found[1])
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s has the codes %v, the documentation has %v", c.file, got, c.want)
		}
	}
}

// TestCrontabMailsWhatWantsAPerson runs the crontab's command with a formetl that ends with each code.
func TestCrontabMailsWhatWantsAPerson(t *testing.T) {
	shell := needs.Program(t, "sh", "any POSIX shell")
	_, command, ok := strings.Cut(read(t, filepath.Join(recipes, "crontab")), "17 * * * *")
	if !ok {
		t.Fatal("the crontab has no entry")
	}
	command = strings.ReplaceAll(command, "/var/lib/formetl", t.TempDir())
	again, person := exitCodes(t)
	for _, code := range slices.Concat([]int{0}, again, person) {
		out, err := exec.CommandContext(t.Context(), shell, "-c", "formetl() { return "+strconv.Itoa(code)+"; }\n"+command).CombinedOutput()
		if mailed := len(out) > 0; err != nil || mailed != slices.Contains(person, code) {
			t.Errorf("%d: %v, mailed %q", code, err, out)
		}
	}
}

// TestWorkflowRunsAgain runs the workflow's script likewise; it gives the last code.
func TestWorkflowRunsAgain(t *testing.T) {
	shell := needs.Program(t, "bash", "apt-get install bash")
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(recipes, "github-workflow.yml"))), &workflow); err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, step := range workflow.Jobs["spreadsheet"].Steps {
		if strings.Contains(step.Run, "formetl run") {
			script = step.Run
		}
	}
	again, person := exitCodes(t)
	for _, code := range slices.Concat([]int{0}, again, person) {
		cmd := exec.CommandContext(t.Context(), shell, "-e", "-c", "sleep() { :; }; formetl() { echo run; return "+strconv.Itoa(code)+"; }\n"+script)
		out, _ := cmd.CombinedOutput() // it ends with the code
		want := 1
		if slices.Contains(again, code) {
			want = 4
		}
		if got := strings.Count(string(out), "run\n"); got != want || cmd.ProcessState.ExitCode() != code {
			t.Errorf("%d: %d runs, exit %d\n%s", code, got, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// pythonCheck reads a recipe without its engine, as Python reads it, and runs its own functions.
// It prints after which codes it runs again, which forms it finds, the names that are imported and
// called, and the lists of words that are commands.
const pythonCheck = `
import ast, json, sys
tree = ast.parse(open(sys.argv[1]).read(), sys.argv[1])
compile(tree, sys.argv[1], "exec")
own = [n for n in tree.body if isinstance(n, ast.Import)
       or isinstance(n, ast.Assign) and not isinstance(n.value, ast.Call)
       or isinstance(n, ast.FunctionDef) and n.name in ("runs_again", "list_forms")]
for n in own:
    if isinstance(n, ast.FunctionDef):
        n.decorator_list = []
names = {}
exec(compile(ast.Module(own, []), sys.argv[1], "exec"), names)
print(json.dumps({
    "again": [c for c in range(256) if names["runs_again"](c)],
    "forms": names["list_forms"](),
    "calls": [n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)],
    "methods": [n.func.attr for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)],
    "keywords": [k.arg for n in ast.walk(tree) if isinstance(n, ast.Call) for k in n.keywords],
    "words": [[e.value for e in n.elts if isinstance(e, ast.Constant)] for n in ast.walk(tree) if isinstance(n, ast.List)],
    "undefined": sorted(
        {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        - {a.name for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
        - {n.name for n in ast.walk(tree) if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
        - {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        - {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)} - set(dir(__builtins__))),
}))
`

// TestPythonRecipes checks the recipes for Airflow and Dagster as far as that is possible
// without these engines, which cannot be had here. What formetl lists of forms is real.
func TestPythonRecipes(t *testing.T) {
	python := needs.Program(t, "python3", "apt-get install python3")
	w := newExamples(t)
	definition := w.example("all-forms.yaml")
	listed := w.formetl("forms", definition, "--json")
	stub := t.TempDir()
	script := "#!/bin/sh\ncat <<'END'\n" + listed + "\nEND\n"
	if err := os.WriteFile(filepath.Join(stub, "formetl"), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", stub+string(os.PathListSeparator)+os.Getenv("PATH"))
	for recipe, want := range map[string]struct{ calls, methods, keywords []string }{
		"airflow_dag.py": {
			[]string{"DAG", "SubprocessHook", "AirflowException", "AirflowFailException", "list_forms"},
			[]string{"partial", "expand", "send_sigterm"},
			[]string{"retries", "retry_delay", "catchup", "max_active_runs", "execution_timeout", "pool", "form"},
		},
		"dagster_assets.py": {
			[]string{"open_pipes_session", "RetryRequested", "Failure", "MaterializeResult", "Definitions", "asset_of"},
			[]string{"get_bootstrap_env_vars"},
			[]string{"allow_retries", "max_retries", "seconds_to_wait", "cron_schedule", "pool"},
		},
	} {
		out, err := exec.CommandContext(t.Context(), python, "-c", pythonCheck, filepath.Join(recipes, recipe)).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", recipe, err, out)
		}
		var found struct {
			Again                               []int
			Forms                               []string
			Calls, Methods, Keywords, Undefined []string
			Words                               [][]string
		}
		if err := json.Unmarshal(out, &found); err != nil {
			t.Fatal(err)
		}
		if again, _ := exitCodes(t); !slices.Equal(found.Again, again) {
			t.Errorf("%s runs again after %v, the documentation says %v", recipe, found.Again, again)
		}
		if len(found.Forms) < 2 || !slices.Contains(found.Forms, "feedback") {
			t.Errorf("%s finds the forms %v in %s", recipe, found.Forms, listed)
		}
		for _, c := range []struct{ want, have []string }{{want.calls, found.Calls}, {want.methods, found.Methods}, {want.keywords, found.Keywords}} {
			for _, name := range c.want {
				if !slices.Contains(c.have, name) {
					t.Errorf("%s lacks %s", recipe, name)
				}
			}
		}
		if !slices.ContainsFunc(found.Words, func(words []string) bool {
			return len(words) > 1 && words[0] == "formetl" && words[1] == "run" && slices.Contains(words, "--form") && slices.Contains(words, "--metrics")
		}) {
			t.Errorf("%s runs no form with its metrics: %v", recipe, found.Words)
		}
		if len(found.Undefined) > 0 {
			t.Errorf("%s: %v are not defined", recipe, found.Undefined)
		}
	}
}
