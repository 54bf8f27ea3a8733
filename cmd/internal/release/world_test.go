package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/cli"
	"github.com/formetl/formetl/extract/formservice"
)

const (
	testKey    = "release-test-key"
	moduleRoot = "../../.." // seen from this package
)

// examples and recipes are the folders under test.
var (
	examples = filepath.Join(moduleRoot, "pipelines", "examples")
	recipes  = filepath.Join(examples, "recipes")
)

// world is a form service over HTTP and a folder with definitions that name it.
type world struct {
	t    *testing.T
	form *formservice.Form // the first that is served
	url  string
	dir  string // of the definitions
}

func newWorld(t *testing.T, forms ...*formservice.Form) *world {
	t.Helper()
	server := httptest.NewServer(&formservice.Server{Key: testKey, Forms: forms})
	t.Cleanup(server.Close)
	return &world{t: t, form: forms[0], url: server.URL, dir: t.TempDir()}
}

// newExamples serves the form feedback, and two more that only all-forms.yaml is about. Its
// folder is for copies of the examples.
func newExamples(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, feedback(), formservice.NewForm("orders", nil, results(3)), formservice.NewForm("test-orders", nil, results(4)))
	w.dir = filepath.Join(w.dir, "pipelines", "examples")
	schemas := filepath.Join("schemas", "examples", "feedback.yaml")
	w.write(filepath.Join("..", "..", schemas), read(t, filepath.Join(moduleRoot, schemas)))
	return w
}

// feedback is a form with the items of schemas/examples/feedback.yaml.
func feedback() *formservice.Form {
	return formservice.NewForm("feedback", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Full name"},
		{ID: "2", Type: "text", Index: 2, Label: "Score"},
		{ID: "4", Type: "text", Index: 3, Label: "Price"},
		{ID: "105", Type: "date", Index: 4, Label: "Born"},
		{ID: "206", Type: "checkbox", Index: 5, Label: "Colours"},
	}, results(240))
}

// results are n results, one every twelve hours from 2026 on. Every fifth is unfinished,
// and every fourth has no name.
func results(n int) []formservice.Result {
	all := make([]formservice.Result, 0, n)
	for i := range n {
		at := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC).Add(time.Duration(i) * 12 * time.Hour).Format(formservice.WallTime)
		metas := []formservice.Meta{{ID: "result_status", Value: "Complete"}, {ID: "date_start", Value: at}, {ID: "date_finish", Value: at}, {ID: "date_update", Value: at}}
		if i%5 == 0 {
			metas = []formservice.Meta{{ID: "result_status", Value: "Incomplete"}, {ID: "date_start", Value: at}, {ID: "date_update", Value: at}}
		}
		items := []formservice.Answer{
			{ID: "2", Type: "text", Index: 2, Values: []string{fmt.Sprint(i % 10)}},
			{ID: "4", Type: "text", Index: 3, Values: []string{fmt.Sprintf("%d.50", i)}},
			{ID: "105", Type: "date", Index: 4, Values: []string{"1990-02-03"}},
			{ID: "206", Type: "checkbox", Index: 5, Values: []string{"red", "blue"}},
		}
		if i%4 != 0 {
			items = append([]formservice.Answer{{ID: "1", Type: "text", Index: 1, Values: []string{"=Ada"}}}, items...)
		}
		all = append(all, formservice.Result{ID: int64(1000 + i), Metas: metas, Items: items})
	}
	return all
}

// write writes a file beside the definitions and returns its path.
func (w *world) write(name, text string) string {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// example copies an example so that it asks the test service. Replaced are pairs of
// texts; each must be there.
func (w *world) example(name string, replaced ...string) string {
	w.t.Helper()
	text := read(w.t, filepath.Join(examples, name))
	replaced = append(replaced, "https://fs1.example.com", w.url)
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(text, replaced[i]) {
			w.t.Fatalf("%s lacks %q", name, replaced[i])
		}
		text = strings.ReplaceAll(text, replaced[i], replaced[i+1])
	}
	return w.write(name, text)
}

// define writes a definition of the form with one output and runs it.
func (w *world) define(name, output string) string {
	w.t.Helper()
	file := w.write(name+".yaml", fmt.Sprintf(`version: 1
name: %s
source: {base_url: %q, account: acme, timezone: America/Chicago}
forms: [%s]
schema: form.schema.yaml
load: [%s]
`, name, w.url, w.form.Directory, output))
	w.formetl("run", file, "--log-level", "error")
	return file
}

// formetl runs a command that must end with 0, and gives its standard output.
func (w *world) formetl(args ...string) string {
	w.t.Helper()
	stdout, stderr, code := formetl(args...)
	if code != 0 {
		w.t.Fatalf("formetl %v ended with %d:\n%s", args, code, stderr)
	}
	return stdout
}

// formetl runs a command with the key in its environment.
func formetl(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	lookup := func(name string) (string, bool) {
		return map[string]string{"FORMETL_API_KEY": testKey}[name], name == "FORMETL_API_KEY"
	}
	code = cli.Main(args, strings.NewReader(""), &out, &errs, lookup)
	return out.String(), errs.String(), code
}

// rows runs a definition, verifies what it wrote, and gives the rows of each form.
func (w *world) rows(definition string) map[string]int64 {
	w.t.Helper()
	file := filepath.Join(w.dir, "report.json")
	args := []string{"run", definition, "--report", file, "--log-level", "error"}
	if !strings.Contains(read(w.t, definition), "\nstate: ") {
		args = append(args, "--state", filepath.Join(w.dir, "state"))
	}
	w.formetl(args...)
	w.formetl("verify", definition)
	var report struct {
		Forms []struct {
			Form     string
			Rows     int64
			Rejected int64
			Outputs  []struct{ Rows int64 }
		}
	}
	if err := json.Unmarshal([]byte(read(w.t, file)), &report); err != nil {
		w.t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, form := range report.Forms {
		if form.Rejected != 0 {
			w.t.Errorf("%d results of %s were rejected", form.Rejected, form.Form)
		}
		for _, output := range form.Outputs { // each holds the same rows
			if before, there := rows[form.Form]; there && before != output.Rows {
				w.t.Errorf("the outputs of %s hold %d and %d rows", form.Form, before, output.Rows)
			}
			rows[form.Form] = output.Rows
		}
	}
	return rows
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
