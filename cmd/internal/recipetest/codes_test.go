package recipetest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/formetl/formetl/cmd/internal/clitest"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// exitCodes are the codes of the documentation's table: those after which a scheduler
// runs again, and those that want a person.
func exitCodes(t *testing.T) (again, person []int) {
	t.Helper()
	table := read(t, filepath.Join(clitest.ModuleRoot, "pipelines", "exit-codes.md"))
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
		{"airflow_dag.py", `RUN_AGAIN = \{(.*)\}`, again},
		{"github-workflow.yml", `(?m)^ *([0-9 |]+)\) echo`, again},
	} {
		found := regexp.MustCompile(c.pattern).FindStringSubmatch(read(t, filepath.Join(recipes, c.file)))
		if found == nil {
			t.Errorf("%s lacks %s", c.file, c.pattern)
			continue
		}
		if got := numbers(t, found[1]); !slices.Equal(got, c.want) {
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

// dagCheck reads a DAG without Airflow, as Python reads it. It prints after which codes
// the DAG's own function says to run again, and the names that are imported and called.
const dagCheck = `
import ast, json, sys
tree = ast.parse(open(sys.argv[1]).read(), sys.argv[1])
compile(tree, sys.argv[1], "exec")
pure = [n for n in tree.body if isinstance(n, ast.Assign) or isinstance(n, ast.FunctionDef)]
names = {}
exec(compile(ast.Module(pure, []), sys.argv[1], "exec"), names)
print(json.dumps({
    "again": [c for c in range(256) if names["runs_again"](c)],
    "imports": [a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names],
    "calls": [n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)],
    "keywords": [k.arg for n in ast.walk(tree) if isinstance(n, ast.Call) for k in n.keywords],
    "undefined": sorted(
        {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        - {a.name for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
        - {n.name for n in ast.walk(tree) if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
        - {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        - {a.arg for n in ast.walk(tree) if isinstance(n, ast.arg) for a in [n]} - set(dir(__builtins__))),
}))
`

// TestDAG checks the DAG as far as that is possible without Airflow, which cannot be had here.
func TestDAG(t *testing.T) {
	python := needs.Program(t, "python3", "apt-get install python3")
	cmd := exec.CommandContext(t.Context(), python, "-c", dagCheck, filepath.Join(recipes, "airflow_dag.py"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var dag struct {
		Again                               []int
		Imports, Calls, Keywords, Undefined []string
	}
	if err := json.Unmarshal(out, &dag); err != nil {
		t.Fatal(err)
	}
	if again, _ := exitCodes(t); !slices.Equal(dag.Again, again) {
		t.Errorf("it runs again after %v, the documentation says %v", dag.Again, again)
	}
	for _, name := range []string{"DAG", "SubprocessHook", "AirflowException", "AirflowFailException", "FormetlOperator"} {
		if !slices.Contains(dag.Calls, name) {
			t.Errorf("%s is not called", name)
		}
	}
	for _, name := range []string{"retries", "retry_delay", "catchup", "max_active_runs", "execution_timeout"} {
		if !slices.Contains(dag.Keywords, name) {
			t.Errorf("%s is not given", name)
		}
	}
	if len(dag.Undefined) > 0 {
		t.Errorf("%v are not defined", dag.Undefined)
	}
}
