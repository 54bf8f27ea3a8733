package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/formetl/formetl/cmd/internal/diagnosed"
	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/s3server"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/doctor"
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
	secret    string // of the store
	do        func(args ...string) (code int, stdout, stderr string)
}

func newPatient(t *testing.T, load string, forms ...*formservice.Form) *patient {
	t.Helper()
	p := &patient{T: t, dir: t.TempDir(), key: testKey}
	service, server := newService(testKey, forms...)
	t.Cleanup(server.Close)
	p.service, p.url, p.file = service, server.URL, filepath.Join(p.dir, "p.yaml")
	p.text = fmt.Sprintf("version: 1\nname: nightly\nsource:\n  base_url: %s\n  account: acme\n  api_key: ${env:FORMETL_API_KEY}\n  timezone: America/Chicago\n"+
		"  requests: {retries: 0, per_day: 0, per_minute: 0}\nforms: [form1]\nextract: {from: 2026-01-01}\nload:\n%s", server.URL, load)
	p.write(p.text)
	p.do = func(args ...string) (int, string, string) {
		var out, told bytes.Buffer
		code := Main(args, strings.NewReader(""), &out, &told, func(name string) (string, bool) {
			return map[string]string{"FORMETL_API_KEY": p.key}[name], name == "FORMETL_API_KEY" && p.key != ""
		})
		return code, out.String(), told.String()
	}
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
func (p *patient) examine() (code int, told diagnosed.Result) {
	p.Helper()
	code, stdout, stderr := p.do("doctor", p.file, "--json")
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
	if code, _, stderr := p.do("run", p.file); code != 0 {
		p.Fatalf("the run ends with %d: %s", code, stderr)
	}
}

// relay lets the definition reach its service through a proxy that changes answers.
func (p *patient) relay(change func(*http.Response) error) {
	p.Helper()
	to, err := url.Parse(p.url)
	if err != nil {
		p.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ModifyResponse: change})
	p.Cleanup(server.Close)
	p.edit(p.url, server.URL)
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

const localOutputs = "  - path: out/{form}.csv\n  - {path: \"lake/{form}/\", format: ndjson, partition: month}\n"

// fault is something that is wrong, and the check that finds it.
type fault struct {
	name string
	make func(p *patient)
	// check is the check that finds it, of the output or form that it ends with.
	check, of string
	state     doctor.State
	code      int
	cure      string // a part of it
}

// serviceFaults are faults of the definition and the service.
func serviceFaults() []fault {
	return []fault{
		{"wrong key", func(p *patient) { p.key = "wrong" }, "key", "", doctor.Failed, exit.NoPermission, "check the API key"},
		{"no key", func(p *patient) { p.key = "" }, "key", "", doctor.Failed, exit.Config, "set the variable"},
		{"unknown account", func(p *patient) { p.edit("account: acme", "account: acmee") }, "account", "acmee", doctor.Failed, exit.NoInput, "check source.account"},
		{"unknown form", func(p *patient) { p.edit("[form1]", "[form1, from1]") }, "forms", "from1", doctor.Failed, exit.NoInput, "correct the form's name"},
		{"no form matches", func(p *patient) { p.edit("[form1]", `["survey-*"]`) }, "forms", "", doctor.Failed, exit.NoInput, "formetl forms"},
		{"no service", func(p *patient) { p.edit(p.url, "http://127.0.0.1:1") }, "service", "", doctor.Failed, exit.Temporary, "check source.base_url"},
		{"another web site", func(p *patient) { p.edit(p.url, newCrooked(p.T)+"/html") }, "service", "", doctor.Failed, exit.Config, "set source.base_url"},
		{"redirected", func(p *patient) { p.edit(p.url, newCrooked(p.T)+"/moved") }, "service", "", doctor.Failed, exit.Config, "set source.base_url"},
		{"busy", func(p *patient) { p.service.SetFaults(formservice.Faults{Busy: 1}) }, "service", "", doctor.Failed, exit.Temporary, "later"},
		{"zone an hour too far west", func(p *patient) { p.edit("America/Chicago", "America/Denver") }, "zone", "form1", doctor.Failed, exit.Config, "source.timezone"},
		{"zone an hour too far east", func(p *patient) {
			p.service.SetForms(patientForm(p.T, time.Minute, 2*time.Minute, 4*time.Minute, 5*time.Minute, 7*time.Minute, 9*time.Minute))
			p.edit("America/Chicago", "America/New_York")
		}, "zone", "form1", doctor.Warning, exit.OK, "source.timezone"},
		{"clock wrong", func(p *patient) {
			p.relay(func(r *http.Response) error {
				r.Header.Set("Date", time.Now().Add(-3*time.Hour).UTC().Format(http.TimeFormat))
				return nil
			})
		}, "clock", "", doctor.Failed, exit.IO, "NTP"},
		{"day's budget used up", func(p *patient) {
			p.edit("per_day: 0", "per_day: 2")
			p.examine()
			p.service.Reset()
		}, "budget", "", doctor.Failed, exit.Temporary, "come back after"},
		{"minute's budget used up", func(p *patient) {
			p.edit("per_minute: 0", "per_minute: 2")
			p.examine()
			p.service.Reset()
		}, "budget", "", doctor.Warning, exit.OK, "come back after"},
		{"range not begun", func(p *patient) { p.edit("from: 2026-01-01", "from: 2999-01-01") }, "definition", "", doctor.Failed, exit.Config, "extract.from"},
		{"definition wrong", func(p *patient) { p.edit("forms:", "from:") }, "definition", "", doctor.Failed, exit.Config, "formetl validate"},
	}
}

// folderFaults are faults of folders, and of the disk.
func folderFaults() []fault {
	return []fault{
		{"file in place of the output's folder", func(p *patient) { write(p.T, p.dir, "out", "") }, "place", "form1.csv", doctor.Failed, exit.CantCreate, "move it away"},
		{"folder in place of the output", func(p *patient) { write(p.T, p.dir, "out/form1.csv/x", "") }, "place", "form1.csv", doctor.Failed, exit.CantCreate, "choose another name"},
		{"file in place of the state folder", func(p *patient) { write(p.T, p.dir, ".formetl", "") }, "state", "", doctor.Failed, exit.CantCreate, "move away"},
		{"file in place of the checkpoints", func(p *patient) { write(p.T, p.dir, ".formetl/checkpoint", "") }, "state", "", doctor.Failed, exit.CantCreate, "move away"},
		{"state folder of another owner", func(p *patient) {
			write(p.T, p.dir, ".formetl/x", "")
			if err := os.Chown(filepath.Join(p.dir, ".formetl"), 65534, 65534); err != nil {
				needs.Missing(p.T, "the right to give files away", "run the tests as root")
			}
		}, "state", "", doctor.Warning, exit.OK, "chown -R"},
		{"state folder open to everybody", func(p *patient) {
			write(p.T, p.dir, ".formetl/x", "")
			p.must(os.Chmod(filepath.Join(p.dir, ".formetl"), 0o777)) //nolint:gosec // the fault
		}, "state", "", doctor.Warning, exit.OK, "chmod o-w"},
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
		}, "disk", "", doctor.Failed, exit.IO, "free space"},
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
		}, "runs", "form1/", doctor.Failed, exit.Temporary, "wait until that run has ended"},
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
		}, "runs", "form1/", doctor.Warning, exit.OK, "the next run finishes it"},
		{"staged file left", func(p *patient) {
			dest, err := local.New(filepath.Join(p.dir, lake))
			p.must(err)
			upload, err := dest.Stage(p.Context(), "20260101T000000Z-00000000", "part")
			p.must(err)
			_, err = upload.Prepare(p.Context())
			p.must(err)
		}, "runs", "form1/", doctor.Warning, exit.OK, "formetl clean"},
		{"part that no manifest lists", func(p *patient) {
			p.run()
			p.must(os.Remove(filepath.Join(p.dir, lake, load.ManifestName)))
		}, "runs", "form1/", doctor.Failed, exit.CantCreate, "--unlisted"},
		{"manifest damaged", func(p *patient) {
			p.run()
			p.must(os.WriteFile(filepath.Join(p.dir, lake, load.ManifestName), []byte("{"), 0o600))
		}, "runs", "form1/", doctor.Failed, exit.CantCreate, "--full"},
		{"part damaged", func(p *patient) {
			p.run()
			parts, err := filepath.Glob(filepath.Join(p.dir, lake, "*", "part-*"))
			p.must(err)
			p.must(os.Remove(parts[0]))
		}, "runs", "form1/", doctor.Warning, exit.OK, "formetl verify"},
		{"dataset of another zone", func(p *patient) {
			p.run()
			p.edit("America/Chicago", "America/Winnipeg") // the same clock under another name
		}, "fit", "form1", doctor.Failed, exit.Config, "restore what was changed"},
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
func (p *patient) diagnose(f fault) diagnosed.Result {
	p.Helper()
	f.make(p)
	before := p.files()
	code, told := p.examine()
	if code != f.code || told.ExitCode != f.code || told.Healthy != (f.code == 0) {
		p.Errorf("it ends with %d, and says %d", code, told.ExitCode)
	}
	found := slices.ContainsFunc(told.Checks, func(c diagnosed.Check) bool {
		return c.Name == f.check && strings.HasSuffix(c.Of, f.of) && c.State == f.state && c.ExitCode == f.code && strings.Contains(c.Cure, f.cure)
	})
	for _, c := range told.Checks {
		other := c.Name != f.check && (c.State == doctor.Failed || c.State == doctor.Warning)
		if !found || other || c.Detail == "" || (c.Cure != "") != (c.State == doctor.Failed || c.State == doctor.Warning) {
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
	for _, f := range slices.Concat(serviceFaults(), folderFaults(), runFaults()) {
		t.Run(f.name, func(t *testing.T) {
			newPatient(t, localOutputs, patientForm(t, ages()...)).diagnose(f)
		})
	}
}

// TestDoctorOnGoodHealth: everything is checked and nothing is found, by ten requests, before
// and after a run.
func TestDoctorOnGoodHealth(t *testing.T) {
	p := newPatient(t, localOutputs, patientForm(t, ages()...))
	for range 2 {
		p.service.Reset()
		told := p.diagnose(fault{name: "none", make: func(*patient) {}, check: "zone", of: "form1", state: doctor.OK})
		if told.Counts.OK != len(told.Checks) || told.Requests != 10 || len(p.service.Log()) != 10 {
			t.Errorf("%+v, %d requests arrived", told, len(p.service.Log()))
		}
		p.run()
	}
}

// TestDoctorAsksNothing of the service without a key or a budget, and checks the rest.
func TestDoctorAsksNothing(t *testing.T) {
	for _, f := range serviceFaults() {
		if f.name != "no key" && f.name != "day's budget used up" && f.name != "minute's budget used up" {
			continue
		}
		p := newPatient(t, localOutputs, patientForm(t, ages()...))
		told := p.diagnose(f)
		if told.Requests != 0 || len(p.service.Log()) != 0 {
			t.Errorf("%s: %d requests, %d arrived", f.name, told.Requests, len(p.service.Log()))
		}
		states := map[string]doctor.State{}
		for _, c := range told.Checks {
			states[c.Name] = c.State
		}
		for _, name := range []string{"service", "account", "forms", "clock", "zone"} {
			if states[name] != doctor.NotChecked {
				t.Errorf("%s: %s is %q", f.name, name, states[name])
			}
		}
		for _, name := range []string{"lists", "writes", "reads", "conditional writes", "stages", "removes", "disk"} {
			if states[name] != doctor.OK {
				t.Errorf("%s: %s is %q", f.name, name, states[name])
			}
		}
	}
}

// TestDoctorFindsSeveralFaults at once. The exit code is the first in contract.md's order.
func TestDoctorFindsSeveralFaults(t *testing.T) {
	p := newPatient(t, localOutputs, patientForm(t, ages()...))
	write(t, p.dir, "out", "")
	write(t, p.dir, ".formetl", "")
	p.key = "wrong"
	code, stdout, stderr := p.do("doctor", p.file)
	if code != exit.NoPermission || strings.Count(stdout, "\nfailed ") != 3 || strings.Count(stdout, "cure: ") != 3 {
		t.Errorf("%d: %s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, " 3 failed, ") || !strings.HasSuffix(stdout, "; it ends with 77\n") {
		t.Errorf("the last line does not sum up: %s", stdout)
	}
	if !strings.Contains(stderr, "3 of ") || !strings.Contains(stderr, "hint: do what stands under each failed check") {
		t.Error(stderr)
	}
}

// onS3 is a definition whose outputs lie in a bucket.
func onS3(t *testing.T, s store) *patient {
	t.Helper()
	const settings = "s3: {endpoint: \"ENDPOINT\", path_style: true, region: us-east-1}"
	p := newPatient(t, "  - {path: \"s3://forms/out/{form}.csv\", "+settings+"}\n  - {path: \"s3://forms/lake/{form}/\", format: ndjson, partition: month, "+settings+"}\n", patientForm(t, ages()...))
	p.text = strings.ReplaceAll(p.text, "ENDPOINT", s.URL)
	p.write(p.text)
	p.secret = s3server.SecretKey
	p.do = func(args ...string) (int, string, string) { return s.output(t, p.dir, p.secret, args...) }
	return p
}

// through lets the definition reach its store through a proxy. change may change a request
// that it has to sign anew then, or answer it and return true.
func (p *patient) through(s store, change func(w http.ResponseWriter, r *http.Request) (answered bool)) {
	p.Helper()
	to, err := url.Parse(s.URL)
	p.must(err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // it is signed
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !change(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	p.Cleanup(server.Close)
	p.edit(s.URL, server.URL)
}

// refuse answers as a store does that denies something.
func refuse(w http.ResponseWriter) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
	return true
}

// unconditioned takes the conditions from a request and signs it anew.
func unconditioned(t *testing.T, r *http.Request) {
	if r.Header.Get("If-None-Match") == "" && r.Header.Get("If-Match") == "" {
		return
	}
	for _, name := range []string{"If-None-Match", "If-Match", "Authorization"} {
		r.Header.Del(name)
	}
	credentials := aws.Credentials{AccessKeyID: s3server.AccessKey, SecretAccessKey: s3server.SecretKey}
	err := v4.NewSigner().SignHTTP(t.Context(), credentials, r, r.Header.Get("X-Amz-Content-Sha256"), "s3", "us-east-1", time.Now())
	if err != nil {
		t.Error(err)
	}
}

// bucketFaults are faults of a bucket and of the way to it.
func bucketFaults(s store) []fault {
	return []fault{
		{"bucket without delete rights", func(p *patient) {
			p.through(s, func(w http.ResponseWriter, r *http.Request) bool { return r.Method == http.MethodDelete && refuse(w) })
		}, "removes", "", doctor.Failed, exit.IO, "s3:DeleteObject"},
		{"bucket without write rights", func(p *patient) {
			p.through(s, func(w http.ResponseWriter, r *http.Request) bool {
				return (r.Method == http.MethodPut || r.Method == http.MethodPost) && refuse(w)
			})
		}, "writes", "", doctor.Failed, exit.IO, "s3:PutObject"},
		{"bucket without read rights", func(p *patient) {
			p.through(s, func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") > 2 && refuse(w)
			})
		}, "reads", "", doctor.Failed, exit.IO, "s3:GetObject"},
		{"bucket that cannot be listed", func(p *patient) {
			p.through(s, func(w http.ResponseWriter, r *http.Request) bool { return r.URL.Query().Has("list-type") && refuse(w) })
		}, "lists", "", doctor.Failed, exit.IO, "s3:ListBucket"},
		{"uploads denied", func(p *patient) {
			p.through(s, func(w http.ResponseWriter, r *http.Request) bool {
				return r.URL.Query().Has("uploads") && r.Method == http.MethodPost && !strings.Contains(r.URL.Path, "probe-") && refuse(w)
			})
		}, "stages", "", doctor.Failed, exit.IO, "s3:PutObject"},
		{"no conditional writes", func(p *patient) {
			p.through(s, func(_ http.ResponseWriter, r *http.Request) bool { unconditioned(p.T, r); return false })
		}, "conditional writes", "", doctor.Warning, exit.OK, "use a store or version that honours conditional writes"},
		{"no such bucket", func(p *patient) { p.edit("s3://forms/", "s3://froms/") }, "place", "", doctor.Failed, exit.CantCreate, "create the bucket"},
		{"wrong secret", func(p *patient) { p.secret = "another-secret-key" }, "lists", "", doctor.Failed, exit.IO, "AWS_SECRET_ACCESS_KEY"},
		{"no store", func(p *patient) { p.edit(s.URL, "http://127.0.0.1:1") }, "place", "", doctor.Failed, exit.Temporary, "check the endpoint"},
	}
}

// TestDoctorFindsFaultsOfBuckets, of a real S3 server. Nothing stays in the bucket.
func TestDoctorFindsFaultsOfBuckets(t *testing.T) {
	s := startStore(t)
	healthy := fault{name: "none", make: func(*patient) {}, check: "conditional writes", state: doctor.OK}
	for _, f := range append(bucketFaults(s), healthy) {
		t.Run(f.name, func(t *testing.T) {
			p := onS3(t, s)
			f.make(p)
			code, told := p.examine()
			found := 0
			for _, c := range told.Checks {
				if c.Name == f.check && c.State == f.state && strings.Contains(c.Cure, f.cure) && strings.HasPrefix(c.Of, "s3://") {
					found++
				}
			}
			if code != f.code || told.ExitCode != f.code || found != 2 || told.Counts.OK < 8 {
				t.Errorf("%d, found at %d outputs: %s", code, found, told.Text())
			}
			if left := s.objects(t); len(left) != 0 {
				t.Errorf("it leaves %v", left)
			}
		})
	}
}
