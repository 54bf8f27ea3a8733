package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/upkeep"
)

// patientForm is a form of the account's zone America/Chicago, whose newest changes are as
// old as the ages say.
func patientForm(t *testing.T, ages ...time.Duration) *formservice.Form {
	t.Helper()
	zone, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(zone)
	results := make([]formservice.Result, 0, len(ages))
	for i, age := range ages {
		at := now.Add(-age).Format(formservice.WallTime)
		results = append(results, formservice.Result{ID: int64(1000 - i), Metas: []formservice.Meta{
			{ID: "result_status", Value: "Complete"}, {ID: "date_finish", Value: at}, {ID: "date_update", Value: at},
		}, Items: []formservice.Answer{{ID: "1", Values: []string{"x"}}}})
	}
	return formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "Name"}}, results)
}

// ages are those of a form that is neither busy nor quiet.
func ages() []time.Duration {
	return []time.Duration{3 * time.Minute, 20 * time.Minute, 41 * time.Minute, 75 * time.Minute, 3 * time.Hour, 30 * time.Hour}
}

// patient is a definition that doctor examines, with its service.
type patient struct {
	*testing.T
	dir, file string
	text      string // of the definition, before the fault
	service   *formservice.Server
	url       string // of the service
	key       string // "": it is not set
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{T: t, dir: t.TempDir(), key: testKey}
	service, server := newService(testKey, patientForm(t, ages()...))
	t.Cleanup(server.Close)
	p.service, p.url, p.file = service, server.URL, filepath.Join(p.dir, "p.yaml")
	p.text = fmt.Sprintf("version: 1\nname: nightly\nsource:\n  base_url: %s\n  account: acme\n  api_key: ${env:FORMETL_API_KEY}\n  timezone: America/Chicago\n"+
		"  requests: {retries: 0, per_day: 0, per_minute: 0}\nforms: [form1]\nextract: {from: 2026-01-01}\nload:\n"+
		"  - path: out/{form}.csv\n  - {path: \"lake/{form}/\", format: ndjson, partition: month}\n", server.URL)
	p.write(p.text)
	return p
}

func (p *patient) write(text string) { write(p.T, p.dir, "p.yaml", text) }

// edit replaces texts of the definition.
func (p *patient) edit(pairs ...string) {
	p.Helper()
	text := strings.NewReplacer(pairs...).Replace(p.text)
	if text == p.text {
		p.Fatalf("%q is not in the definition", pairs)
	}
	p.write(text)
}

// examine runs doctor and decodes its answer.
func (p *patient) examine() (code int, told checklist) {
	p.Helper()
	code, stdout, stderr := inProcess(p.key, "doctor", p.file, "--json")
	if err := json.Unmarshal([]byte(stdout), &told); err != nil {
		p.Fatalf("%d, %v: %s%s", code, err, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, testKey) {
		p.Error("it shows the key")
	}
	return code, told
}

// run makes a run, which has to end with 0.
func (p *patient) run() {
	p.Helper()
	if code, _, stderr := inProcess(p.key, "run", p.file); code != 0 {
		p.Fatalf("the run ends with %d: %s", code, stderr)
	}
}

// files are all files of the folder, with their content. The ledger of requests is left out.
func (p *patient) files() map[string]string {
	p.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(p.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && path != p.dir && strings.HasPrefix(entry.Name(), ".cache") {
			return err
		}
		if strings.HasPrefix(entry.Name(), "requests-") {
			return nil
		}
		if found[path] = "folder"; !entry.IsDir() {
			data, err := os.ReadFile(path)
			found[path] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
	return found
}

// fault is something that is wrong, and the check that finds it.
type fault struct {
	name string
	make func(p *patient)
	// check is the check that finds it, of the output or form that it ends with.
	check, of string
	state     upkeep.CheckState
	code      int
	cure      string // a part of it
}

// serviceFaults are faults of the definition and the service.
func serviceFaults() []fault {
	return []fault{
		{"wrong key", func(p *patient) { p.key = "wrong" }, "key", "", upkeep.Failed, console.ExitNoPermission, "API page"},
		{"no key", func(p *patient) { p.key = "" }, "key", "", upkeep.Failed, console.ExitConfig, "set the variable"},
		{"unknown account", func(p *patient) { p.edit("account: acme", "account: acmee") }, "account", "acmee", upkeep.Failed, console.ExitNoInput, "check the account"},
		{"unknown form", func(p *patient) { p.edit("[form1]", "[form1, from1]") }, "forms", "from1", upkeep.Failed, console.ExitNoInput, "check the form's name; `formetl forms "},
		{"no form matches", func(p *patient) { p.edit("[form1]", `["survey-*"]`) }, "forms", "", upkeep.Failed, console.ExitNoInput, "formetl forms"},
		{"no service", func(p *patient) { p.edit(p.url, "http://127.0.0.1:1") }, "service", "", upkeep.Failed, console.ExitTemporary, "whether the service is up"},
		{"another web site", func(p *patient) { p.edit(p.url, newCrooked(p.T)+"/html") }, "service", "", upkeep.Failed, console.ExitConfig, "the service's own address"},
		{"busy", func(p *patient) { p.service.SetFaults("busy=1") }, "service", "", upkeep.Failed, console.ExitTemporary, "later"},
		{"zone an hour too far west", func(p *patient) { p.edit("America/Chicago", "America/Denver") }, "zone", "form1", upkeep.Failed, console.ExitConfig, "source.timezone"},
		{"day's budget used up", func(p *patient) {
			p.edit("per_day: 0", "per_day: 2")
			p.examine()
			p.service.Reset()
		}, "budget", "", upkeep.Failed, console.ExitTemporary, "run it after"},
		{"minute's budget used up", func(p *patient) {
			p.edit("per_minute: 0", "per_minute: 2")
			p.examine()
			p.service.Reset()
		}, "budget", "", upkeep.Warning, console.ExitOK, "wait until"},
		{"range not begun", func(p *patient) { p.edit("from: 2026-01-01", "from: 2999-01-01") }, "definition", "", upkeep.Failed, console.ExitConfig, "extract.from"},
		{"definition wrong", func(p *patient) { p.edit("forms:", "from:") }, "definition", "", upkeep.Failed, console.ExitConfig, "formetl validate"},
	}
}

// folderFaults are faults of folders, and of the disk.
func folderFaults() []fault {
	return []fault{
		{"file in place of the output's folder", func(p *patient) { write(p.T, p.dir, "out", "") }, "place", "form1.csv", upkeep.Failed, console.ExitCantCreate, "move it away"},
		{"folder in place of the output", func(p *patient) { write(p.T, p.dir, "out/form1.csv/x", "") }, "place", "form1.csv", upkeep.Failed, console.ExitCantCreate, "choose another name"},
		{"file in place of the state folder", func(p *patient) { write(p.T, p.dir, ".formetl", "") }, "state", "", upkeep.Failed, console.ExitCantCreate, "move it away"},
		{"file in place of the checkpoints", func(p *patient) { write(p.T, p.dir, ".formetl/checkpoint", "") }, "state", "", upkeep.Failed, console.ExitCantCreate, "move it away"},
		{"disk nearly full", func(p *patient) {
			p.run()
			file := filepath.Join(p.dir, "out", load.FileManifestName("form1.csv"))
			data, err := os.ReadFile(file)
			p.must(err)
			m, err := load.DecodeManifest(data)
			p.must(err)
			m.Parts[0].Bytes = 1 << 60 // as much is not free anywhere
			data, err = m.Encode()
			p.must(err)
			p.must(os.WriteFile(file, data, 0o600))
		}, "disk", "", upkeep.Failed, console.ExitIO, "make space"},
	}
}

// runFaults are faults of what runs left, or are writing.
func runFaults() []fault {
	lake := filepath.Join("lake", "form1")
	return []fault{
		{"another run writes", func(p *patient) {
			dest, err := local.New(filepath.Join(p.dir, lake))
			p.must(err)
			lease, err := dest.Acquire(p.Context(), "", load.Holder{RunID: "20260101T000000Z-00000000", Pipeline: "other", PID: os.Getpid()})
			p.must(err)
			p.Cleanup(func() { _ = lease.Release(p.Context()) })
		}, "runs", "form1/", upkeep.Failed, console.ExitTemporary, "wait until that run has ended"},
		{"commit interrupted", func(p *patient) {
			p.run()
			dest, err := local.New(filepath.Join(p.dir, lake))
			p.must(err)
			data, version, err := dest.Get(p.Context(), load.ManifestName)
			p.must(err)
			m, err := load.DecodeManifest(data)
			p.must(err)
			m.RunID = "20260101T000000Z-00000000"
			_, err = load.Commit{RunID: m.RunID, Manifest: *m, Base: version}.Record(p.Context(), dest)
			p.must(err)
		}, "runs", "form1/", upkeep.Warning, console.ExitOK, "the next run finishes it"},
		{"staged file left", func(p *patient) {
			dest, err := local.New(filepath.Join(p.dir, lake))
			p.must(err)
			upload, err := dest.Stage(p.Context(), "20260101T000000Z-00000000", "part")
			p.must(err)
			_, err = upload.Prepare(p.Context())
			p.must(err)
		}, "runs", "form1/", upkeep.Warning, console.ExitOK, "formetl clean"},
		{"part that no manifest lists", func(p *patient) {
			p.run()
			p.must(os.Remove(filepath.Join(p.dir, lake, load.ManifestName)))
		}, "runs", "form1/", upkeep.Failed, console.ExitCantCreate, "restore the manifest"},
		{"manifest damaged", func(p *patient) {
			p.run()
			p.must(os.WriteFile(filepath.Join(p.dir, lake, load.ManifestName), []byte("{"), 0o600))
		}, "runs", "form1/", upkeep.Failed, console.ExitCantCreate, "--full"},
		{"record of a commit damaged", func(p *patient) { write(p.T, p.dir, "lake/form1/.formetl/intent", "{") }, "runs", "form1/", upkeep.Failed, console.ExitIO, "--full"},
		{"part damaged", func(p *patient) {
			p.run()
			parts, err := filepath.Glob(filepath.Join(p.dir, lake, "*", "part-*"))
			p.must(err)
			p.must(os.Remove(parts[0]))
		}, "runs", "form1/", upkeep.Warning, console.ExitOK, "formetl verify"},
	}
}

func (p *patient) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// diagnose makes a fault and lets doctor find it. Every other check that was made is
// made all the same, and nothing of it stays.
func (p *patient) diagnose(f fault) checklist {
	p.Helper()
	f.make(p)
	before := p.files()
	code, told := p.examine()
	if code != f.code || told.ExitCode != f.code || told.Healthy != (f.code == 0) {
		p.Errorf("it ends with %d, and says %d", code, told.ExitCode)
	}
	found := slices.ContainsFunc(told.Checks, func(c checked) bool {
		return c.Name == f.check && strings.HasSuffix(c.Of, f.of) && c.State == f.state && c.ExitCode == f.code && strings.Contains(c.Cure, f.cure)
	})
	for _, c := range told.Checks {
		other := c.Name != f.check && (c.State == upkeep.Failed || c.State == upkeep.Warning)
		if !found || other || c.Detail == "" || (c.Cure != "") != (c.State == upkeep.Failed || c.State == upkeep.Warning) {
			p.Errorf("%s %s of %s: %s; %s (%d)", c.State, c.Name, c.Of, c.Detail, c.Cure, c.ExitCode)
		}
	}
	after := p.files()
	for path, was := range before {
		if is, there := after[path]; !there || is != was {
			p.Errorf("%s was changed", path)
		}
	}
	for path := range after {
		if _, there := before[path]; !there && filepath.Base(path) != ".formetl" { // the ledger's folder
			p.Errorf("%s stays", path)
		}
	}
	return told
}

// TestDoctorFindsFaults of the service, the definition and the places, and each names its cure.
func TestDoctorFindsFaults(t *testing.T) {
	needs.Slow(t)
	for _, f := range slices.Concat(serviceFaults(), folderFaults(), runFaults()) {
		t.Run(f.name, func(t *testing.T) {
			p := newPatient(t)
			told := p.diagnose(f)
			// Without a key or a budget the service is asked nothing, and the rest is checked.
			if silent := f.name == "no key" || f.check == "budget"; silent && (told.Requests != 0 || len(p.service.Log()) != 0) {
				t.Errorf("%d requests, %d arrived", told.Requests, len(p.service.Log()))
			}
		})
	}
}

// TestDoctorOnGoodHealth: everything is checked and nothing is found, by nine requests, before
// and after a run.
func TestDoctorOnGoodHealth(t *testing.T) {
	p := newPatient(t)
	for range 2 {
		p.service.Reset()
		told := p.diagnose(fault{name: "none", make: func(*patient) {}, check: "zone", of: "form1", state: upkeep.OK})
		if told.Counts.OK != len(told.Checks) || told.Requests != 9 || len(p.service.Log()) != 9 {
			t.Errorf("%+v, %d requests arrived", told, len(p.service.Log()))
		}
		p.run()
	}
}

// TestJSON holds what programs are written against.
func TestJSON(t *testing.T) {
	const want = `{
  "pipeline": "nightly",
  "definition": "nightly.yaml",
  "at": "2026-03-10T18:00:00Z",
  "requests": 1,
  "honours": {
    "api": "v1",
    "form": "form1",
    "requests": 2,
    "rows": [
      {
        "asked": "fs_min_id",
        "answer": "not shown",
        "reason": "the form has too few results",
        "needed": true
      }
    ]
  },
  "healthy": true,
  "exit_code": 0,
  "counts": {
    "ok": 1,
    "warnings": 1,
    "failed": 0,
    "not_checked": 0
  },
  "checks": [
    {
      "name": "budget",
      "state": "ok",
      "detail": "the definition sets no budget",
      "exit_code": 0
    },
    {
      "name": "conditional writes",
      "of": "s3://b/",
      "state": "warning",
      "detail": "the store ignores them",
      "cure": "use another store",
      "exit_code": 0
    }
  ]
}
`
	r := &upkeep.Checklist{
		Pipeline: "nightly", Definition: "nightly.yaml", At: time.Date(2026, 3, 10, 18, 0, 0, 5, time.UTC), Requests: 1,
		Checks: []upkeep.Check{
			{Name: "budget", State: upkeep.OK, Detail: "the definition sets no budget"},
			{Name: "conditional writes", Of: "s3://b/", State: upkeep.Warning, Detail: "the store ignores them", Cure: "use another store"},
		},
		Honours: &upkeep.Honours{API: "v1", Form: "form1", Requests: 2, Rows: []upkeep.Row{
			{Asked: "fs_min_id", Answer: upkeep.NotShown, Reason: "the form has too few results", Needed: true},
		}},
	}
	var got bytes.Buffer
	if err := printChecklist(&got, r, true); err != nil || got.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, &got, want)
	}
}
