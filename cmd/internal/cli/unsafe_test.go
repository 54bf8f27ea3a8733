package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/schemas/plain"
)

// steering is what a service could write to take over a terminal: C1, an override of the
// direction, and all ends of lines.
const steering = "\u009b31m\u202eevil\u202c\u0085next\u2028line\u2029end\nformetl: fake\r\u2066x\u007f"

// TestNothingSteersTheTerminal: whatever the service says, no command shows what could steer
// a terminal, on either stream, and no file for people holds it.
func TestNothingSteersTheTerminal(t *testing.T) {
	results := make([]formservice.Result, 0, 20)
	for i := range 20 {
		results = append(results, formservice.Result{
			ID:    int64(i + 1),
			Metas: []formservice.Meta{{ID: "date_start", Value: "soon" + steering}, {ID: "date_finish", Value: "2026-01-05 10:00:00"}, {ID: "odd\u009bmeta", Value: steering}},
			Items: []formservice.Answer{{ID: "1", Type: "text" + steering, Index: 1, Values: []string{steering}}, {ID: "2\u202e", Type: "checkbox", Index: 2, Values: []string{steering, "b"}}},
		})
	}
	form := formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Name" + steering}, {ID: "2\u202e", Type: "checkbox", Index: 2, Label: steering}}, results)
	form.Name, form.Description = "Form"+steering, steering
	other := formservice.NewForm("form\u009b2\u202e", nil, nil)
	service := httptest.NewServer(&formservice.Server{Key: testKey, Forms: []*formservice.Form{form, other}})
	defer service.Close()
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<fs_response status="error"><error code="0">bad `+steering+`</error></fs_response>`)
	}))
	defer failing.Close()
	t.Chdir(t.TempDir())
	definition := strings.NewReplacer("BASE_URL", service.URL, "schema: s.yaml\n", "names: label\n", "  to: 2026-03-01\n", "").Replace(goodDefinition)
	if err := os.WriteFile("p.yaml", []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("all.yaml", []byte(strings.Replace(definition, "[form1]", `["*"]`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	base := service.URL
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"FORMETL_API_KEY": testKey, "FORMETL_BASE_URL": base, "FORMETL_ACCOUNT": formservice.DefaultAccount, "FORMETL_TIMEZONE": "UTC", "HOME": t.TempDir()}[name]
		return v, ok
	}
	try := func(command string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := Main(strings.Fields(command), strings.NewReader(""), &stdout, &stderr, env)
		for name, text := range map[string]string{"standard output": stdout.String(), "standard error": stderr.String()} {
			for _, r := range text {
				if plain.Unsafe(r) && r != '\n' && r != '\t' {
					t.Errorf("%s (%d): %s holds %U: %q", command, code, name, r, text)
					break
				}
			}
			if strings.Contains(text, "\nformetl: fake") {
				t.Errorf("%s: %s has a line of the service's: %q", command, name, text)
			}
		}
		if stdout.Len()+stderr.Len() == 0 {
			t.Errorf("%s (%d) says nothing", command, code)
		}
	}
	for _, command := range []string{
		"forms", "forms --json", "status --form form1", "status --form form1 --json", "publish --form form1", "publish --form form1 --json",
		"preview --form form1", "preview --form form1 --wide", "preview --form form1 --json", "preview p.yaml", "count --form form1 --log-level debug",
		"export --form form1 -o a.csv", "export --form form1 -o b.csv --names label --log-level debug", "export --form form1 -o c.csv --names label --log-format json --log-level debug",
		"export --form form1 -o d.csv --select Nme", "export --form form1 -o e.csv --where Nme:equals=x", "export --form form1 -o x.csv --limit 3",
		"schema infer --form form1", "schema infer --form form1 --names label -o s.yaml", "schema show p.yaml", "schema ddl p.yaml --dialect postgres", "schema labels p.yaml --for spss", "schema labels p.yaml --for r",
		"plan p.yaml", "plan p.yaml --json", "plan all.yaml", "doctor p.yaml", "doctor all.yaml --json", "run p.yaml", "run p.yaml --log-format json", "run all.yaml", "verify p.yaml", "state show all.yaml", "schema diff p.yaml", "schema diff p.yaml --json",
		"init --form form1 --no-input -o init.yaml",
	} {
		try(command)
	}
	base = failing.URL
	for _, command := range []string{"forms", "count --form form1", "export --form form1 -o f.csv --log-level debug", "export --form form1 -o f.csv --log-format json", "schema infer --form form1", "preview --form form1", "status --form form1"} {
		try(command + " --retries 1")
	}
	for _, file := range []string{"s.yaml", "init.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, r := range string(data) {
			if plain.Unsafe(r) && r != '\n' {
				t.Errorf("%s holds %U", file, r)
				break
			}
		}
	}
}
