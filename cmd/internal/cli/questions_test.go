package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/formetl/formetl/extract/formservice"
)

// questions are the words that begin the questions of pipelines/examples/questions.md, and what
// must hold once the command of each has run.
var questions = []struct{ begins, holds string }{
	{"Last month's completed", "stderr '2 results written to .*orders.xlsx'\nexists orders.xlsx"},
	{"All CVs", "grep '^2,2,1,f-2-5-2_Grace.pdf,application/pdf,' cvs/files.csv\n! grep '^3,' cvs/files.csv\nexists cvs/1/2-1-f-2-5-1_Ada.pdf\n! exists cvs/1/3-1-sig-2-6-1_x.png\ngrep '^1,Ada,' applicants.csv"},
	{"What did people", "grep '^Bob,Red\\|Other,Teal$' colours.csv"},
	{"The newest", "stdout 'Zoë'"},
	{"How many answers", "stdout '^2$'"},
	{"A CSV file", "grep 'Zoë' survey-excel.csv"},
	{"What do the columns", "rows survey.parquet 3\ngrep 'Are you satisfied' survey.codebook.csv\ngrep 'Good' survey.codebook.csv"},
	{"Every colour", "grep '^id,finished,colours__red,colours__green,colours__blue,colours_other,satisfied,born$' survey.csv\ngrep ',true,false,false,Teal,' survey.csv"},
	{"The same in SPSS", "grep '^VARIABLE LABELS' survey.sps\ngrep 'Are you satisfied' survey.sps"},
	{"And in R", "grep 'Are you satisfied' survey.R"},
	{"A lake", "exists lake/jobs/_manifest.json lake/jobs__files/_manifest.json files/jobs/3/2-1-f-2-5-3_June.pdf"},
	{"Does the lake", "stdout 'jobs'"},
	{"How many requests", "stdout 'results +3'\nstdout 'each uploaded file that is not stored yet takes one more request'"},
	{"All forms", "exists forms/orders.ndjson forms/jobs.ndjson forms/survey.ndjson\n! grep 'Ada' forms/jobs.ndjson"},
	{"Has the form", "stdout 'born'"},
}

// TestQuestions runs the command that answers each of the questions.
func TestQuestions(t *testing.T) {
	examples := filepath.Join(moduleRoot, "pipelines", "examples")
	page, err := os.ReadFile(filepath.Join(examples, "questions.md"))
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile("(?s)\n### ([^\n]+)\n\n```sh\n([^\n]+)\n```\n").FindAllStringSubmatch(string(page), -1)
	if len(asked) != len(questions) {
		t.Fatalf("the page asks %d questions", len(asked))
	}
	var script strings.Builder
	for i, q := range questions {
		question, command := asked[i][1], asked[i][2]
		if !strings.HasPrefix(question, q.begins) {
			t.Fatalf("question %d is %q", i+1, question)
		}
		command, file, toFile := strings.Cut(command, " > ")
		fmt.Fprintf(&script, "# %s\nexec %s\n", question, command)
		if toFile {
			fmt.Fprintf(&script, "cp stdout %s\n", file)
		}
		fmt.Fprintf(&script, "%s\n", q.holds)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "questions.txtar"), []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	params := scripts(t, func() *formservice.Server { return askedAbout(time.Now()) })
	params.Dir = dir
	serve := params.Setup
	params.Setup = func(e *testscript.Env) error {
		if err := os.CopyFS(e.WorkDir, os.DirFS(filepath.Join(examples, "questions"))); err != nil {
			return err
		}
		return serve(e)
	}
	testscript.Run(t, params)
}

// askedAbout serves the forms that the questions are about, as they are now.
func askedAbout(now time.Time) *formservice.Server {
	lastMonth := time.Date(now.Year(), now.Month(), 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, -10).Format(formservice.WallTime)
	item := func(id, kind string, index int, label string, choices ...string) formservice.Item {
		return formservice.Item{ID: id, Type: kind, Index: index, Label: label, Choices: choices}
	}
	result := func(id int64, status, finished string, answers ...[]string) formservice.Result {
		r := formservice.Result{ID: id, Metas: []formservice.Meta{{ID: "result_status", Value: status}, {ID: "date_finish", Value: finished}}}
		for i, values := range answers {
			r.Items = append(r.Items, formservice.Answer{ID: fmt.Sprint(i + 1), Values: values})
		}
		return r
	}
	file := func(name string) []string { return []string{formservice.MadeFiles + name} }
	orders := formservice.NewForm("orders", []formservice.Item{
		item("1", "text", 1, "Order number"), item("2", "text", 2, "Full name"), item("3", "text", 3, "Product"), item("4", "text", 4, "Price"), item("5", "text", 5, "Ordered on"),
	}, []formservice.Result{
		result(1, "Complete", lastMonth, []string{"A-1"}, []string{"Ada"}, []string{"Pen"}, []string{"1.50"}, []string{"2026-01-01"}),
		result(2, "Incomplete", lastMonth, []string{"A-2"}, []string{"Bob"}, []string{"Ink"}, []string{"3.00"}, []string{"2026-01-01"}),
		result(3, "Complete", lastMonth, []string{"A-3"}, []string{"Cy"}, []string{"Pad"}, []string{"2.25"}, []string{"2026-01-01"}),
		result(4, "Complete", "2025-01-05 10:00:00", []string{"A-0"}, []string{"Di"}, []string{"Pen"}, []string{"1.50"}, []string{"2025-01-05"}),
	})
	jobs := formservice.NewForm("jobs", []formservice.Item{item("1", "text", 1, "Full name"), item("2", "list", 2, "CV"), item("3", "text", 3, "Signature")}, []formservice.Result{
		result(1, "Complete", "2026-05-01 00:00:00", []string{"Ada"}, file("f-2-5-1_Ada.pdf"), file("sig-2-6-1_x.png")),
		result(2, "Complete", "2026-05-31 23:59:59", []string{"Grace"}, file("f-2-5-2_Grace.pdf"), file("sig-2-6-2_x.png")),
		result(3, "Complete", "2026-06-01 00:00:00", []string{"June"}, file("f-2-5-3_June.pdf"), file("sig-2-6-3_x.png")),
	})
	survey := formservice.NewForm("survey", []formservice.Item{
		item("1", "text", 1, "Name"), item("2", "checkbox", 2, "Colours", "Red", "Green", "Blue", "Another colour"), item("3", "radio", 3, "Are you satisfied?", "Good", "Bad"), item("4", "text", 4, "Born"),
	}, []formservice.Result{
		result(1, "Complete", "2026-02-01 10:00:00", []string{"Ann"}, []string{"Green"}, []string{"Good"}, []string{"2001-02-03"}),
		result(2, "Complete", "2026-03-01 00:00:00", []string{"Bob"}, []string{"Red", "Teal"}, []string{"Bad"}, []string{"1999-12-31"}),
		result(3, "Complete", "2026-04-01 10:00:00", []string{"Zoë"}, []string{"Blue"}, []string{"Good"}, []string{"soon"}),
	})
	return &formservice.Server{Key: testKey, Forms: []*formservice.Form{orders, jobs, survey}, API: formservice.Both, Files: true}
}
