package cli

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// hmacCanary is a key of pii: hmac whose spellings all differ.
const hmacCanary = `hm+ c k/e%y&=ö"<of more than 16`

// privateForm holds personal data in every field but a few: strings, lists,
// choices, several values for one string, numbers, metas.
func privateForm(results int) *formservice.Form {
	items := []formservice.Item{
		{ID: "1", Type: "email", Index: 1, Label: "Mail"},
		{ID: "2", Type: "radio", Index: 2, Label: "Phone"},
		{ID: "3", Type: "text", Index: 3, Label: "Name"},
		{ID: "4", Type: "checkbox", Index: 4, Label: "Friends"},
		{ID: "5", Type: "checkbox", Index: 5, Label: "Tags"},
		{ID: "6", Type: "text", Index: 6, Label: "Note"},
		{ID: "7", Type: "text", Index: 7, Label: "Card"},
		{ID: "8", Type: "number", Index: 8, Label: "Amount"},
		{ID: "10", Type: "number", Index: 10, Label: "Number"},
	}
	list := make([]formservice.Result, 0, results)
	for i := range results {
		list = append(list, privateResult(i))
	}
	return formservice.NewForm("people", items, list)
}

// privateValue is awkward to every format.
func privateValue(what string, i int) string {
	return fmt.Sprintf("ab%s-%s-%d é\"<&>|\\\n,;x@%s.example", privateWord, what, i%7, privateNumber)
}

// privateHash is what pii: hmac makes of a value.
func privateHash(value string) string {
	h := hmac.New(sha256.New, []byte(hmacCanary))
	h.Write([]byte(value))
	return hex.EncodeToString(h.Sum(nil))
}

func privateResult(i int) formservice.Result {
	value := func(what string) string { return privateValue(what, i) }
	answer := func(id, kind string, index int, values ...string) formservice.Answer {
		return formservice.Answer{ID: id, Type: kind, Index: index, Values: values}
	}
	card, amount := []string{value("card")}, fmt.Sprint(i)
	switch i % 100 {
	case 17:
		card = append(card, value("second")) // rejected, with both
	case 33:
		amount = "none"
	}
	r := formservice.Result{ID: int64(1000 + i), Metas: []formservice.Meta{
		{ID: "result_status", Value: "Complete"},
		{ID: "date_finish", Value: time.Date(2026, 1, 1, i/6, i%60, 0, 0, time.UTC).Format(formservice.WallTime)},
		{ID: "user_ip", Value: value("ip")},
		{ID: "login_email", Value: value("login")},
	}, Items: []formservice.Answer{
		answer("1", "email", 1, value("mail")), answer("2", "radio", 2, value("phone")), answer("3", "text", 3, value("name")),
		answer("4", "checkbox", 4, value("friend"), value("other friend")), answer("5", "checkbox", 5, value("tag"), "", value("tag")),
		answer("6", "text", 6, value("note")), answer("7", "text", 7, card...), answer("8", "number", 8, amount),
		answer("10", "number", 10, privateNumber),
	}}
	if i >= 150 {
		r.Items = append(r.Items, answer("77", "text", 11, fmt.Sprint("harmless ", i)))
	}
	return r
}

// privateColumns are the columns of the form; rules are put in where %s stands.
func privateColumns(rules bool, edit ...string) string {
	text := `{name: id, from: result_id, type: int64}
{name: mail, from: "item:1", type: string, pii: hmac}
{name: phone, from: "item:2", type: string, pii: redact}
{name: name, from: "item:3", type: string, pii: truncate(2)}
{name: friends, from: "item:4", type: list<string>, pii: hmac, explode: true}
{name: tags, from: "item:5", type: list<string>, list_as: json, pii: redact}
{name: note, from: "item:6", type: int64, on_error: fail, pii: drop}
{name: card, from: "item:7", type: string, pii: hmac}
{name: amount, from: "item:8", type: int64}
{name: number, from: "item:10", type: int64, pii: drop}
{name: ip, from: "meta:user_ip", type: string, pii: drop}
{name: login, from: "meta:login_email", type: string, pii: truncate(0)}
`
	text = strings.NewReplacer(edit...).Replace(text)
	if !rules {
		text = strings.NewReplacer(", pii: hmac", "", ", pii: redact", "", ", pii: truncate(2)", "", ", pii: truncate(0)", "", ", on_error: fail, pii: drop", ", on_error: set_null", ", pii: drop", "").Replace(text)
	}
	return "columns:\n  - " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  - ") + "\n"
}

// privateWorld is what is written by the commands of the test.
type privateWorld struct {
	t            *testing.T
	root, inputs string
	service      *formservice.Server
	url          string
	told         int
	env          map[string]string
}

func newPrivateWorld(t *testing.T) *privateWorld {
	t.Helper()
	w := &privateWorld{t: t, root: t.TempDir(), inputs: t.TempDir()}
	service, server := newService(testKey, privateForm(250))
	t.Cleanup(server.Close)
	w.service, w.url = service, server.URL
	w.env = map[string]string{
		definition.KeyVariable: testKey, definition.HMACKeyVariable: hmacCanary, "SHORT": hmacCanary[:15],
		"FORMETL_BASE_URL": w.url, "FORMETL_ACCOUNT": formservice.DefaultAccount, "FORMETL_TIMEZONE": "UTC",
		"XDG_CACHE_HOME": filepath.Join(w.root, "cache"), "HOME": w.root,
	}
	t.Setenv("TMPDIR", filepath.Join(w.root, "tmp")) // what is left there is grepped too
	if err := os.Mkdir(filepath.Join(w.root, "tmp"), 0o750); err != nil {
		t.Fatal(err)
	}
	return w
}

// onlyDatasets are the outputs whose path begins with it.
const onlyDatasets = "lake-"

// outputs are a file and, where it can be, a dataset of every format.
func (w *privateWorld) outputs(name string, only ...string) string {
	var b strings.Builder
	out := func(path, format string, more string) {
		if len(only) > 0 && !strings.HasPrefix(path, only[0]) {
			return
		}
		fmt.Fprintf(&b, "  - {path: %q, format: %s%s}\n", filepath.ToSlash(filepath.Join(w.root, "out", name))+"/"+path, format, more)
	}
	for _, f := range console.Formats() {
		out(f.Name+"/{form}"+f.Extension, f.Name, "")
		if f.Text {
			out(f.Name+"/{form}"+f.Extension+".gz", f.Name, "")
			out(f.Name+"/{form}"+f.Extension+".zst", f.Name, "")
		}
		if !f.FileOnly {
			out("lake-"+f.Name+"/{form}/", f.Name, ", partition: day")
		}
	}
	out("excel/{form}.csv", "csv", ", csv: {profile: excel}")
	return b.String()
}

// file is one CSV file as the only output.
func (w *privateWorld) file(folder string) string {
	return fmt.Sprintf("  - {path: %q}\n", filepath.ToSlash(filepath.Join(w.root, folder))+"/{form}.csv")
}

func (w *privateWorld) define(name, schema, outputs string) string {
	w.t.Helper()
	return write(w.t, w.inputs, name+".yaml", fmt.Sprintf(`version: 1
name: %s
source: {base_url: %q, account: acme, timezone: UTC, requests: {retries: 0, timeout: 20s, concurrency: 1}}
forms: [people]
extract: {from: 2026-01-01, to: 2026-01-03, window: 6h}
state: %s
schema:
  %s
load:
%s`, name, w.url, filepath.Join(w.root, "state"), strings.ReplaceAll(strings.TrimSpace(schema), "\n", "\n  "), outputs))
}

// do runs a command in this process, at the debug level, and keeps what it
// told.
func (w *privateWorld) do(code int, args ...string) {
	w.t.Helper()
	var out, told bytes.Buffer
	format := []string{"json", "text"}[w.told%2]
	args = append(args, "--log-level", "debug", "--log-format", format)
	got := Main(args, strings.NewReader(""), &out, &told, func(name string) (string, bool) { v, set := w.env[name]; return v, set })
	if got != code {
		w.t.Errorf("%v ended with %d, want %d:\n%s", args, got, code, &told)
	}
	w.told++
	write(w.t, w.root, fmt.Sprintf("told/%02d-%s.stdout", w.told, args[0]), out.String())
	write(w.t, w.root, fmt.Sprintf("told/%02d-%s.stderr", w.told, args[0]), told.String())
}

// everything runs whatever reads or writes values: whole runs, later ones,
// failing and interrupted ones, exports and looks at the columns.
func (w *privateWorld) everything(rules bool) {
	columns := privateColumns(rules)
	all := w.define("all", "max_rejects: 20\n"+columns, w.outputs("all"))
	file := func(name string) string { return filepath.Join(w.root, name) }
	w.do(0, "validate", all)
	w.do(0, "plan", all, "--json")
	w.do(0, "run", all, "--report", file("report.json"), "--metrics", file("metrics.prom"), "--progress", "on")
	if _, err := w.service.Form("people").Insert(privateResult(251)); err != nil {
		w.t.Fatal(err)
	}
	w.do(0, "run", all, "--report", file("again.html"))
	w.do(0, "replay", all, "--report", file("replay.json"))
	w.do(0, "schema", "show", all)
	w.do(console.ExitData, "schema", "diff", all, "--json") // amounts that do not fit
	w.do(0, "schema", "ddl", all, "--dialect", "duckdb")
	w.do(console.ExitData, "run", w.define("strict", "max_rejects: 0\n"+columns, w.file("out/strict")), "--report", file("strict.json"))
	w.do(console.ExitData, "run", w.define("fails", privateColumns(rules, `from: "item:7", type: string`, `from: "item:7", type: string, on_error: fail`), w.file("out/fails")), "--report", file("fails.html"))
	w.do(console.ExitData, "run", w.define("unknown", "unknown: fail\n"+columns, w.file("out/unknown")))

	schema := write(w.t, w.inputs, "people.schema.yaml", "version: 1\nhmac_key: ${env:FORMETL_HMAC_KEY}\nmax_rejects: 20\n"+privateColumns(rules, ", explode: true", "")) // which a file takes
	service := serviceArgs(w.url)
	export := func(args ...string) {
		w.do(0, append(append([]string{"export", "--form", "people", "--schema", schema, "--state", file("state2")}, args...), service...)...)
	}
	export()
	export("--excel", "-o", file("export.csv"))
	export("-o", file("export.parquet"), "--report", file("export.html"))
	w.interrupted(columns)
}

// interrupted leaves the checkpoint of a run that the service ended early. Then
// the next run resumes from it, and what it has staged and recorded is copied,
// as a process that was killed there would have left it.
func (w *privateWorld) interrupted(columns string) {
	var asked atomic.Int64
	w.service.Before = func(r formservice.Request) {
		if r.Transaction == formservice.TransactionResults && asked.Add(1) == 6 {
			w.service.SetFaults(formservice.Faults{Busy: 1})
		}
	}
	cut := w.define("cut", "max_rejects: 20\n"+columns, w.outputs("cut", onlyDatasets))
	w.do(console.ExitTemporary, "run", cut, "--report", filepath.Join(w.root, "cut.html"))
	w.service.Before = nil
	w.service.SetFaults(formservice.Faults{})
	w.copied("state", "early")
	def, err := definition.Load(cut, definition.LoadOptions{
		Secrets: definition.Secrets{Lookup: func(name string) (string, bool) { v, set := w.env[name]; return v, set }}, Formats: console.Formats(), Schemes: console.Schemes(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var once sync.Map
	_, err = pipelines.Run(w.t.Context(), def, pipelines.Options{Options: account.Options{Tables: console.Tables(slog.New(slog.DiscardHandler))}, At: func(point string) {
		if _, before := once.LoadOrStore(point, true); !before && (point == string(load.StepCheck) || point == string(load.StepUnmark)) {
			w.copied(filepath.Join("out", "cut"), point)
		}
	}})
	if err != nil {
		w.t.Error(err)
	}
}

// copied copies a folder whose files a run may be moving or removing.
func (w *privateWorld) copied(from, to string) {
	from, to = filepath.Join(w.root, from), filepath.Join(w.root, to)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return gone(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return gone(err)
		}
		path = to + strings.TrimPrefix(path, from)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o600)
	})
	if err != nil {
		w.t.Error(err)
	}
}

// gone is an error but that a file is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// TestPersonalDataNowhere runs everything under rules for personal data and
// greps every byte that was written anywhere. Without the rules the same
// commands show the values in every kind of file, so that the grep is known
// to find them there.
func TestPersonalDataNowhere(t *testing.T) {
	for _, rules := range []bool{true, false} {
		t.Run(fmt.Sprintf("rules=%v", rules), func(t *testing.T) {
			w := newPrivateWorld(t)
			w.everything(rules)
			leaky, all := privateUnder(t, w.root)
			if rules {
				for _, name := range leaky {
					t.Errorf("%s holds personal data", name)
				}
				w.badKeys()
				lines, _ := leaksUnder(t, w.root, hmacCanary)
				for _, l := range lines {
					t.Errorf("%s: the key of pii: hmac", l)
				}
			}
			w.checkKinds(rules, leaky, all)
		})
	}
}

// checkKinds holds that every kind of file was there to be grepped, that
// where there are no rules it shows what it holds, and that where there are
// the rules can be seen at work. What tells of a run shows no value at all.
func (w *privateWorld) checkKinds(rules bool, leaky []string, all map[string][][]byte) {
	w.t.Helper()
	names := slices.Collect(maps.Keys(all))
	treated := func(name string) bool {
		return slices.ContainsFunc(all[name], func(data []byte) bool {
			return bytes.Contains(data, []byte(privateHash(privateValue("friend", 0)))) || bytes.Contains(data, []byte(privateHash(privateValue("second", 17))))
		})
	}
	for _, kind := range w.kinds() {
		there := matching(kind, names)
		switch {
		case len(there) == 0:
			w.t.Errorf("no %s was written", kind)
		case rules && !slices.ContainsFunc(there, treated):
			w.t.Errorf("no %s holds a hash", kind)
		case !rules && len(matching(kind, leaky)) == 0:
			w.t.Errorf("without rules no %s shows anything: the grep does not see into it", kind)
		}
	}
	for _, told := range []string{"*.html", "*.json", "told/*-run.stderr"} { // not even what the rules leave
		for _, name := range matching(told, names) {
			if treated(name) || slices.Contains(leaky, name) {
				w.t.Errorf("%s holds values of results", name)
			}
		}
	}
	for _, kind := range []string{"again.html", "fails.html", "export.html", "cut.html", "report.json", "metrics.prom", "out/all/csv/people.csv.manifest.json", "out/all/lake-parquet/people/_manifest.json", "told/*-run.stderr", "strict.json", "out/all/*/people*.codebook.csv", "out/all/*/people*.schema.json"} {
		if len(matching(kind, names)) == 0 {
			w.t.Errorf("no %s was written", kind)
		}
	}
}

// kinds are patterns of the files that hold values of results.
func (w *privateWorld) kinds() []string {
	kinds := []string{
		"out/all/excel/people.csv", "out/all/lake-csv/people/" + load.RejectsFolder + "/*.jsonl", "out/all/csv/people.csv.rejects.jsonl",
		"early/checkpoint/*/*-rows", "early/checkpoint/*/*-record",
		string(load.StepCheck) + "/lake-parquet/people/" + load.ControlFolder + "/*/staged-*", string(load.StepCheck) + "/lake-csv/people/" + load.ControlFolder + "/*/staged-*",
		"export.csv", "export.parquet", "told/*-export.stdout",
	}
	for _, f := range console.Formats() {
		kinds = append(kinds, "out/all/"+f.Name+"/people"+f.Extension, "out/all/"+f.Name+"/people__friends"+f.Extension)
		if f.Text {
			kinds = append(kinds, "out/all/"+f.Name+"/people"+f.Extension+".gz", "out/all/"+f.Name+"/people"+f.Extension+".zst")
		}
		if !f.FileOnly {
			kinds = append(kinds, "out/all/lake-"+f.Name+"/people/dt=*/*", "out/all/lake-"+f.Name+"/people__friends/dt=*/*")
		}
	}
	return kinds
}

func matching(pattern string, names []string) (found []string) {
	for _, name := range names {
		if ok, err := filepath.Match(pattern, filepath.ToSlash(name)); err == nil && ok {
			found = append(found, name)
		}
	}
	return found
}

// badKeys are keys that cannot be used, and places where no key belongs.
func (w *privateWorld) badKeys() {
	out := w.file("out/bad")
	columns := privateColumns(true)
	for _, line := range []string{"hmac_key: '" + hmacCanary + "'", "hmac_key: ${env:SHORT}", "hmac_key: ${env:UNSET}", "hmackey: '" + hmacCanary + "'", "hmac_key: ${env:FORMETL_HMAC_KEY}\nempty: '" + hmacCanary + "'"} {
		w.do(console.ExitConfig, "run", w.define("bad", line+"\n"+columns, out))
		w.do(console.ExitConfig, append([]string{"export", "--form", "people", "--schema", write(w.t, w.inputs, "bad.schema.yaml", "version: 1\n"+line+"\n"+columns)}, serviceArgs(w.url)...)...)
	}
}
