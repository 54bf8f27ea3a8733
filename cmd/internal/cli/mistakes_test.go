package cli

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract/formservice"
)

// mistake is what somebody types wrong: arguments, or one line of a good definition or
// schema file, or the environment.
type mistake struct {
	args       string // "": run p.yaml
	line, is   string // a line of the definition or the schema file, and what stands there instead
	env        string // NAME=VALUE in place of the good environment's
	mayRequest bool   // only the headings tell, so one request is sent
}

const goodDefinition = `version: 1
name: feedback
source:
  base_url: BASE_URL
  account: acme
  api_key: ${env:FORMETL_API_KEY}
  timezone: America/Chicago
forms: [form1]
schema: s.yaml
extract:
  from: 2026-01-01
  to: 2026-03-01
load:
  - path: out/{form}.csv
    format: csv
`

const goodSchema = `version: 1
unknown: add
columns:
  - {name: id, from: result_id, type: int64}
  - {name: full_name, from: "item:1", type: string}
`

func mistakes() []mistake {
	return []mistake{
		// Commands and flags.
		{args: "exprot"},
		{args: "exprot --form form1"},
		{args: "version"},
		{args: "run p.yaml --dry-run --report dry.json"},
		{args: "export form1"},
		{args: "export --form form1 -output x.csv"},
		{args: "export --form form1 -out x.csv"},
		{args: "export feedback.yaml"},
		{args: "run p.yaml --report --log-level error"},
		{args: "export --form form1 -o --last month"},
		{args: "preview --form form1 --latest 5"},
		{args: "export --forms form1"},
		{args: "run"},
		{args: "plan p.yaml p.yaml"},
		{args: "schema show p.yaml p.yaml"},
		{args: "state show p.yaml p.yaml"},
		{args: "replay p.yaml p.yaml"},
		{args: "doctor p.yaml p.yaml"},
		{args: "run p.yaml --var stage"},
		{args: "export --form form1 --select ,", mayRequest: true},
		{args: "export --form form1 --select full_name,", mayRequest: true},
		{args: "run p.yaml --var stage=test"},
		{args: "run p.yaml --var a=1 --var a=2"},
		{args: "count p.yaml --account other"},
		{args: "count --from 2026-01-01"},
		{line: "name: feedback", is: "name: ${var:stage}"},
		{line: "name: feedback", is: "name: ${env:NOT_SET}"},
		{line: "name: feedback", is: "name: ${cmd:date}"},
		{line: "name: feedback", is: "name: ${file:none.txt}"},
		{line: "  api_key: ${env:FORMETL_API_KEY}", is: "  api_key: ${cmd:exit 4}"},
		{args: "export"},
		{args: "export --form form1 --api-key secret"},
		{args: "export --form a/b"},
		{args: "export --form form*"},
		{args: "export --form form1 --form orders"},
		{args: "export --form form1 --from yesterday"},
		{args: "export --form form1 --to 2026-13-01"},
		{args: "export --form form1 --from 2026-02-01 --to 2026-01-01"},
		{args: "export --form form1 --from 2999-01-01"},
		{args: "export --form form1 --where full_name"},
		{args: "export --form form1 --where full_name:equals"},
		{args: "export --form form1 --where full_name:is=Ada"},
		{args: "export --form form1 --where full_name:empty=1"},
		{args: "export --form form1 --match xor"},
		{args: "export --form form1 --names labels"},
		{args: "export --form form1 --window 3x"},
		{args: "export --form form1 --limit -1"},
		{args: "export --form form1 --limit 0"},
		{args: "export --form form1 --limit ten"},
		{args: "export --form form1 --from 2026-1-5"},
		{args: "export --form form1 --from="},
		{args: "export --form form1 --out x.csv"},
		{args: "export --form form1 --colums full_name"},
		{args: "export --form form1 --filter full_name"},
		{args: "export --form form1 --since 2026-01-01"},
		{args: "export --form form1 --until 2026-01-01"},
		{args: "export --form form1 --start 2026-01-01"},
		{args: "export --form form1 --key secret"},
		{args: "export -f form1"},
		{args: "export -form form1"},
		{args: "run p.yaml --json"},
		{args: "export --form form1 -o form1.arrow.gz"},
		{args: "export --form form1 --schema p.yaml"},
		{args: "export --form form1 --limit 1 --view 77", mayRequest: true},
		{args: "count --form form1 --min-id 0"},
		{args: "run s.yaml"},
		{args: "schema show s.yaml"},
		{args: "run p.yml"},
		{args: "run p"},
		{args: "run p.yaml --var stage="},
		{args: "export --form form1 --format xml"},
		{args: "export --form form1 -o form1.xls"},
		{args: "export --form form1 -o form1"},
		{args: "export --form form1 -o form1.parquet.gz"},
		{args: "export --form form1 -o form1.csv --format json"},
		{args: "export --form form1 -o out/"},
		{args: "export --form form1 -o ~/form1.csv"},
		{args: "export --form form1 -o $HOME/form1.csv"},
		{args: "export --form form1 -o s3:/bucket/form1.csv"},
		{args: "export --form form1 --state=~/state"},
		{args: "run p.yaml --report=~/report.json"},
		{args: "run p.yaml --state s3://bucket/state"},
		{line: "  - path: out/{form}.csv", is: "  - path: $HOME/{form}.csv"},
		{args: "export --form form1 -o s3://bucket"},
		{args: "export --form form1 -o form1.csv --s3-region eu-west-1"},
		{args: "export --form form1 -o s3://bucket/form1.csv --s3-endpoint here"},
		{args: "export --form form1 -o form1.xlsx --excel"},
		{args: "export --form form1 -o taken.csv"},
		{args: "export --form form1 --schema none.yaml"},
		{args: "export --form form1 --where ful_name:equals=Ada", mayRequest: true},
		{args: "export --form form1 --select fullname", mayRequest: true},
		{args: "export --form form1 --select name", mayRequest: true},
		{args: "export --form form1 --concurrency 0"},
		{args: "export --form form1 --retries -1"},
		{args: "export --form form1 --timeout 0s"},
		{args: "export --form form1 --timeout soon"},
		{args: "export --form form1 --requests-per-minute -1"},
		{args: "export --form form1 --timezone Chicago"},
		{args: "export --form form1 --base-url acme.example.com"},
		{args: "export --form form1 --base-url http://acme.example.com"},
		{args: "export --form form1 --base-url https://acme.example.com/api/v2"},
		{args: "export --form form1 --api-key-file none.key"},
		{args: "export --form form1 --log-format xml"},
		{args: "export --form form1 --log-level loud"},
		{args: "export --form form1 --progress yes"},
		{args: "preview --form form1 -n 0"},
		{args: "count --form form1 --min-id 5 --max-id 4"},
		{args: "copy --form form1"},
		{args: "run none.yaml"},
		{args: "run p.yaml --form other"},
		{args: "run p.yaml --from 2026-04-01"},
		{args: "schema shwo p.yaml"},
		{args: "schema ddl p.yaml --dialect mysql"},
		{args: "state reset p.yaml"},
		{args: "init --form form1 -o p.yaml"},
		{args: "init"},
		{args: "init --form form1 --path ~/{form}.csv"},
		{args: "init --form form1 --path {form}.csv --path {form}.csv"},
		{args: "init --form form1 --api-key-reference secret"},
		{args: "init --form form1", env: "FORMETL_API_KEY="},
		{args: "init --form frm1", mayRequest: true},
		// Environments.
		{args: "export --form form1", env: "FORMETL_BASE_URL="},
		{args: "export --form form1", env: "FORMETL_ACCOUNT="},
		{args: "export --form form1", env: "FORMETL_API_KEY="},
		{args: "export --form form1", env: "FORMETL_TIMEZONE=Mars/Olympus"},
		{args: "export --form form1", env: "FORMETL_BASE_URL=https://me:secret@acme.example.com/api?key=secret"},
		{args: "export --form form1", env: "FORMETL_BASE_URL=acme.example.com"},
		{env: "FORMETL_API_KEY="},
		// Definitions.
		{line: "version: 1", is: "version: 2"},
		{line: "  timezone: America/Chicago", is: "  timezone: CST"},
		{line: "  api_key: ${env:FORMETL_API_KEY}", is: "  api_key: secret"},
		{line: "  api_key: ${env:FORMETL_API_KEY}", is: "  api_key: ${file:none.key}"},
		{line: "forms: [form1]", is: ""},
		{line: "schema: s.yaml", is: "schema: none.yaml"},
		{line: "  to: 2026-03-01", is: "  until: 2026-03-01"},
		{line: "  - path: out/{form}.csv", is: "  - path: out/{from}.csv"},
		{line: "    format: csv", is: "    format: excel"},
		{line: "forms: [form1]", is: "forms: [form1"},
		// Schema files.
		{line: "unknown: add", is: "unknown: drop"},
		{line: `  - {name: full_name, from: "item:1", type: string}`, is: `  - {name: full_name, from: "item:1", type: strng}`},
		{line: `  - {name: full_name, from: "item:1", type: string}`, is: `  - {name: full_name, from: "itme:1", type: string}`},
	}
}

// TestMistakes holds the exact answer to each mistake. It names the place and what to
// type instead, and no request is sent.
func TestMistakes(t *testing.T) {
	var b strings.Builder
	for _, m := range mistakes() {
		requests := 0
		service := &formservice.Server{Key: testKey, Forms: []*formservice.Form{smallForm()}, Before: func(formservice.Request) { requests++ }}
		server := httptest.NewServer(service)
		var code int
		var stderr string
		t.Run(m.String(), func(t *testing.T) { code, stderr = m.make(t, server.URL) })
		server.Close()
		if most := map[bool]int{true: 2}[m.mayRequest]; requests > most { // one asks which generation the service speaks
			t.Errorf("%s: %d requests", m, requests)
		}
		fmt.Fprintf(&b, "$ %s\n%d\n%s\n", m, code, stderr)
	}
	const golden = "testdata/mistakes.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	is, was := strings.Split(b.String(), "\n$ "), strings.Split(string(want), "\n$ ")
	if len(is) != len(was) || len(is) < 60 {
		t.Errorf("%d mistakes, %s has %d: -update writes it anew", len(is), golden, len(was))
	}
	for i := range min(len(is), len(was)) {
		if is[i] != was[i] {
			t.Errorf("%s\nwant\n%s", is[i], was[i])
		}
	}
}

// String is what is wrong, as the golden file shows it.
func (m mistake) String() string {
	text := "formetl " + m.args
	if m.args == "" {
		text = "formetl run p.yaml"
	}
	if m.env != "" {
		text = m.env + " " + text
	}
	if m.line != "" {
		text += "    # " + strings.TrimSpace(m.line) + " -> " + strings.TrimSpace(m.is)
	}
	return text
}

// make makes the mistake, and returns the exit code and what is said.
func (m mistake) make(t *testing.T, url string) (code int, stderr string) {
	t.Helper()
	dir := t.TempDir()
	definition, schema := goodDefinition, goodSchema
	if m.line != "" {
		if !strings.Contains(definition+schema, m.line+"\n") {
			t.Fatalf("no file has the line %q", m.line)
		}
		if strings.Contains(definition, m.line+"\n") {
			definition = strings.Replace(definition, m.line+"\n", m.is+"\n", 1)
		} else {
			schema = strings.Replace(schema, m.line+"\n", m.is+"\n", 1)
		}
	}
	write(t, dir, "p.yaml", strings.ReplaceAll(definition, "BASE_URL", url))
	write(t, dir, "s.yaml", schema)
	write(t, dir, "taken.csv", "not yours\n")
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"FORMETL_BASE_URL": url, "FORMETL_ACCOUNT": formservice.DefaultAccount, "FORMETL_TIMEZONE": "America/Chicago", "FORMETL_API_KEY": testKey,
	}
	if name, value, ok := strings.Cut(m.env, "="); ok {
		env[name] = value
	}
	args := strings.Fields(m.args)
	if len(args) == 0 {
		args = []string{"run", "p.yaml"}
	}
	t.Chdir(dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	var out, said bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &said, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if code == 0 {
		t.Errorf("%s: is no mistake:\n%s", m, &said)
	}
	text := strings.NewReplacer(dir, "DIR", url, "URL").Replace(said.String())
	text = regexp.MustCompile(`(?m)^time=.*\n`).ReplaceAllString(text, "") // the log, whose lines have the time
	return code, regexp.MustCompile(`range, 20[0-9-]+ [0-9:]{8}, up`).ReplaceAllString(text, "range, NOW, up")
}
