package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/cmd/internal/exit"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest/needs"
	"github.com/formetl/formetl/load/loadtest/s3server"
)

// objects are what lies below a folder or a prefix, to be damaged.
type objects interface {
	get(t *testing.T, name string) []byte
	put(t *testing.T, name string, data []byte)
	remove(t *testing.T, name string)
}

type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) get(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(f.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return data
}

func (f folder) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.path(name)), 0o750), os.WriteFile(f.path(name), data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (f folder) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(f.path(name)); err != nil {
		t.Fatal(err)
	}
}

type prefix struct {
	store
	under string
}

func (p prefix) get(t *testing.T, name string) []byte { return p.objects(t)[p.under+name] }

func (p prefix) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if _, err := p.client.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(p.under + name), Body: bytes.NewReader(data)}); err != nil {
		t.Fatal(err)
	}
}

func (p prefix) remove(t *testing.T, name string) { p.store.remove(t, p.under+name) }

// verifyWorld is a dataset that runs wrote, and its service.
type verifyWorld struct {
	*testing.T
	objects
	form    *formservice.Form
	service *formservice.Server
	file    string // the definition
	do      func(args ...string) (code int, stdout, stderr string)
}

func (w *verifyWorld) manifest() *load.Manifest {
	w.Helper()
	m, err := load.DecodeManifest(w.get(w.T, load.ManifestName))
	if err != nil {
		w.Fatal(err)
	}
	return m
}

func (w *verifyWorld) write(m *load.Manifest) {
	w.Helper()
	data, err := m.Encode()
	if err != nil {
		w.Fatal(err)
	}
	w.put(w.T, load.ManifestName, data)
}

// must runs a command that has to end with 0.
func (w *verifyWorld) must(args ...string) {
	w.Helper()
	if code, _, stderr := w.do(args...); code != 0 {
		w.Fatalf("%v ends with %d: %s", args, code, stderr)
	}
}

// changed changes a part: its bytes become those that change returns.
func (w *verifyWorld) changed(at int, change func(data []byte) []byte) {
	w.Helper()
	p := w.manifest().Parts[at]
	w.put(w.T, p.Path, change(w.get(w.T, p.Path)))
}

// claimed lets the manifest claim that part at is data, whose ids are those of the part
// at from.
func (w *verifyWorld) claimed(at, from int, data []byte, rows int64) {
	w.Helper()
	m := w.manifest()
	p, of := &m.Parts[at], m.Parts[from]
	sum := sha256.Sum256(data)
	p.Bytes, p.SHA256, p.MinID, p.MaxID, p.IDs = int64(len(data)), hex.EncodeToString(sum[:]), of.MinID, of.MaxID, of.IDs
	m.Rows += rows - p.Rows
	p.Rows = rows
	w.put(w.T, p.Path, data)
	w.write(m)
}

// datasetDamages are what happens to a dataset, and the kinds of problems that verify finds.
func datasetDamages() []struct {
	name  string
	do    func(w *verifyWorld)
	kinds string
} {
	return []struct {
		name  string
		do    func(w *verifyWorld)
		kinds string
	}{
		{"nothing", func(*verifyWorld) {}, ""},
		{"a part is removed", func(w *verifyWorld) { w.remove(w.T, w.manifest().Parts[1].Path) }, "missing"},
		{"a part is cut", func(w *verifyWorld) { w.changed(1, func(data []byte) []byte { return data[:len(data)-1] }) }, "length"},
		{"a byte is changed", func(w *verifyWorld) {
			w.changed(2, func(data []byte) []byte {
				data[len(data)/2] ^= 1
				return data
			})
		}, "sha256"},
		{"a part is replaced by another of the same size", func(w *verifyWorld) {
			w.changed(0, func(data []byte) []byte { return bytes.Repeat([]byte("x"), len(data)) })
		}, "sha256"},
		{"a result is twice over two parts", func(w *verifyWorld) {
			m := w.manifest()
			w.claimed(1, 0, w.get(w.T, m.Parts[0].Path), m.Parts[0].Rows)
		}, "twice"},
		{"the manifest claims other rows", func(w *verifyWorld) {
			m := w.manifest()
			w.claimed(1, 1, w.get(w.T, m.Parts[1].Path), m.Parts[1].Rows+1)
		}, "rows"},
		{"a part is no file of its format", func(w *verifyWorld) { w.claimed(1, 1, []byte("\x00{\"[\n\"x"), 1) }, "unreadable"},
		{"a set of ids is of another part", func(w *verifyWorld) {
			m := w.manifest()
			m.Parts[0].IDs = m.Parts[1].IDs
			w.write(m)
		}, "ids"},
		{"a set of ids is damaged", func(w *verifyWorld) { w.put(w.T, load.IDsName(w.manifest().Parts[0].IDs), []byte("x")) }, "ids"},
		{"a set of ids is gone", func(w *verifyWorld) { w.remove(w.T, load.IDsName(w.manifest().Parts[0].IDs)) }, "ids"},
		{"dead letters are damaged", func(w *verifyWorld) {
			m := w.manifest()
			m.Parts[0].Letters = m.Parts[0].SHA256
			w.put(w.T, load.RejectsName(m.Parts[0].Letters), []byte("x"))
			w.write(m)
		}, "letters"},
		{"dead letters are gone", func(w *verifyWorld) {
			m := w.manifest()
			m.Parts[0].Letters = m.Parts[0].SHA256
			w.write(m)
		}, "letters"},
		{"a set of ids lacks one", func(w *verifyWorld) {
			m := w.manifest()
			ids, err := load.DecodeIDs(w.get(w.T, load.IDsName(m.Parts[0].IDs)))
			if err != nil {
				w.Fatal(err)
			}
			ids.AndNot(roaring64.BitmapOf(ids.Maximum()))
			data, sum, err := load.EncodeIDs(ids)
			if err != nil {
				w.Fatal(err)
			}
			w.put(w.T, load.IDsName(sum), data)
			m.Parts[0].IDs = sum
			w.write(m)
		}, "ids"},
		{"the manifest is an earlier run's", func(w *verifyWorld) {
			before := w.get(w.T, load.ManifestName)
			w.must("run", w.file, "--full")
			w.put(w.T, load.ManifestName, before)
		}, "manifest missing unlisted"},
		{"the manifest's sum is wrong", func(w *verifyWorld) {
			m := w.manifest()
			m.Rows++
			w.write(m)
		}, "manifest"},
		{"the manifest is gone", func(w *verifyWorld) { w.remove(w.T, load.ManifestName) }, "manifest"},
		{"the manifest is damaged", func(w *verifyWorld) { w.put(w.T, load.ManifestName, []byte("{")) }, "manifest"},
		{"_SUCCESS is gone", func(w *verifyWorld) { w.remove(w.T, load.SuccessName) }, "manifest"},
		{"a part is there under a name that no run gives", func(w *verifyWorld) {
			p := w.manifest().Parts[0]
			w.put(w.T, strings.Replace(p.Path, "part-", "part-2020", 1), w.get(w.T, p.Path))
		}, "unlisted"},
		{"a part is copied", func(w *verifyWorld) {
			p := w.manifest().Parts[0]
			at := strings.LastIndex(p.Path, "-")
			w.put(w.T, p.Path[:at]+"-0077"+p.Path[strings.Index(p.Path[at:], ".")+at:], w.get(w.T, p.Path))
		}, "unlisted"},
	}
}

// checkDamages damages a dataset in every way, verifies it, and lets the named command
// mend it.
func checkDamages(t *testing.T, world func(t *testing.T) *verifyWorld) {
	t.Helper()
	for _, d := range datasetDamages() {
		t.Run(d.name, func(t *testing.T) {
			w := world(t)
			d.do(w)
			w.service.Reset()
			code, stdout, stderr := w.do("verify", w.file, "--json")
			if n := len(w.service.Log()); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
			var told struct {
				Sound   bool
				Outputs []struct {
					Problems []struct{ Kind, Problem string }
					Commands []string
				}
			}
			if err := json.Unmarshal([]byte(stdout), &told); err != nil || len(told.Outputs) != 1 {
				t.Fatalf("%d, %v: %s%s", code, err, stdout, stderr)
			}
			kinds := make([]string, 0, len(told.Outputs[0].Problems))
			for _, p := range told.Outputs[0].Problems {
				kinds = append(kinds, p.Kind)
			}
			slices.Sort(kinds)
			if got := strings.Join(slices.Compact(kinds), " "); got != d.kinds || told.Sound != (d.kinds == "") || (code == exit.Data) != (d.kinds != "") {
				t.Fatalf("it ends with %d and finds %q, not %q: %s%s", code, got, d.kinds, stdout, stderr)
			}
			if len(told.Outputs[0].Commands) == 0 {
				byHand := strings.Contains(stderr, "hint: do what the problems say; then")
				if d.kinds != "" && !byHand {
					t.Errorf("it names no command: %s", stderr)
				}
				return
			}
			// What it names mends the dataset.
			for _, command := range told.Outputs[0].Commands {
				w.must(strings.Fields(strings.TrimPrefix(command, "formetl "))...)
			}
			if code, stdout, stderr := w.do("verify", w.file); code != 0 {
				t.Errorf("after %q it ends with %d: %s%s", told.Outputs[0].Commands, code, stdout, stderr)
			}
		})
	}
}

const verifiedDefinition = `forms: [form1]
extract: {from: 2026-01-01, to: 2026-04-01}
load:
  - path: %PATH%
    format: %FORMAT%
    partition: month
`

func verifiedForm() *formservice.Form {
	return formservice.Generate(formservice.GenerateOptions{
		Directory: "form1", Results: 250, Seed: 9, Items: 6,
		From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
	})
}

func verifiedWorld(t *testing.T, format, compression string) *verifyWorld {
	t.Helper()
	w := &verifyWorld{T: t, form: verifiedForm()}
	service, server := newService(testKey, w.form)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	w.service, w.objects = service, folder(filepath.Join(dir, "lake", "form1"))
	text := strings.NewReplacer("%PATH%", "lake/{form}/", "%FORMAT%", format+compression).Replace(verifiedDefinition)
	w.file = pipelineFile(t, dir, "verified", server.URL, "", text)
	w.do = func(args ...string) (int, string, string) {
		var out, told bytes.Buffer
		code := Main(args, strings.NewReader(""), &out, &told, func(name string) (string, bool) { return testKey, name == "FORMETL_API_KEY" })
		return code, out.String(), told.String()
	}
	w.must("run", w.file)
	return w
}

// TestVerify: verify finds every damage of a dataset on disk, in each format, without a
// request, and the command that it names mends it.
func TestVerify(t *testing.T) {
	compression := map[string]string{"csv": "\n    compression: gzip", "ndjson": "\n    compression: zstd"}
	for _, format := range needs.Sample(t, []string{"csv", "ndjson", "arrow", "parquet"}, 2) {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			checkDamages(t, func(t *testing.T) *verifyWorld {
				t.Helper()
				return verifiedWorld(t, format, compression[format])
			})
		})
	}
}

// TestVerifyOnS3 does the same in a bucket.
func TestVerifyOnS3(t *testing.T) {
	s := startStore(t)
	checkDamages(t, func(t *testing.T) *verifyWorld {
		t.Helper()
		for key := range s.objects(t) {
			s.remove(t, key)
		}
		w := &verifyWorld{T: t, form: verifiedForm(), objects: prefix{s, "lake/form1/"}}
		service, server := newService(testKey, w.form)
		t.Cleanup(server.Close)
		dir := t.TempDir()
		w.service = service
		text := strings.NewReplacer("%PATH%", "s3://forms/lake/{form}/\n    s3: {path_style: true, region: us-east-1}", "%FORMAT%", "parquet").Replace(verifiedDefinition)
		w.file = pipelineFile(t, dir, "verified", server.URL, "", text)
		w.do = func(args ...string) (int, string, string) { return s.output(t, dir, s3server.SecretKey, args...) }
		w.must("run", w.file)
		return w
	})
	for _, url := range []string{"s3://forms/none/", "s3://forms/none.csv"} {
		if code, stdout, stderr := s.output(t, t.TempDir(), s3server.SecretKey, "verify", url); code != exit.Usage || !strings.Contains(stderr, "there is nothing at "+url) {
			t.Errorf("%s ends with %d: %s%s", url, code, stdout, stderr)
		}
	}
}

// TestVerifyRemedies: what verify says last, and the commands that it names, are true for a
// file that no command removes, for parts that one removes, and for both beside damage.
func TestVerifyRemedies(t *testing.T) {
	w := verifiedWorld(t, "parquet", "")
	part := w.manifest().Parts[0]
	foreign := strings.Replace(part.Path, "part-", "copy-of-part-", 1)
	unlisted := strings.Replace(part.Path, "-0000.", "-0077.", 1)
	check := func(code int, told ...string) {
		t.Helper()
		got, stdout, stderr := w.do("verify", w.file)
		for _, want := range told {
			if !strings.Contains(stdout+stderr, want) {
				t.Errorf("%q is missing", want)
			}
		}
		if got != code || t.Failed() {
			t.Fatalf("it ends with %d: %s%s", got, stdout, stderr)
		}
	}
	w.put(t, foreign, w.get(t, part.Path))
	if _, stdout, _ := w.do("verify", w.file); strings.Contains(stdout, "formetl") {
		t.Errorf("no command removes a file that no run wrote: %s", stdout)
	}
	check(exit.Data, foreign+": no run wrote it", "move it away\n", "hint: do what the problems say; then")
	w.put(t, unlisted, w.get(t, part.Path))
	w.changed(1, func(data []byte) []byte { return data[:1] })
	check(exit.Data, "to mend the rest  formetl clean "+w.file+" --unlisted\n  and         formetl run "+w.file+" --from ", "hint: do what the problems say, and run what stands under them; then")
	w.remove(t, foreign)
	check(exit.Data, "to mend it  formetl clean", "hint: run what stands under the problems; then")
	w.must("clean", w.file, "--unlisted")
	w.must("run", w.file)
	check(exit.OK)
}

// TestProposalsRepeatFlags: the commands that verify, state show and a run propose mean the
// same definition, state folder and forms as the command that proposes them.
func TestProposalsRepeatFlags(t *testing.T) {
	w := verifiedWorld(t, "parquet", "")
	text, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(w.file), "staged.yaml")
	if err := os.WriteFile(file, bytes.Replace(text, []byte("lake/"), []byte("lake/${var:stage}/"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	given := []string{"--var", "stage=the test", "--state", filepath.Join(t.TempDir(), "state")}
	quoted := " " + file + " --var 'stage=the test' --state " + given[3]
	w.must(append([]string{"run", file}, given...)...)
	w.objects = folder(filepath.Join(filepath.Dir(file), "lake", "the test", "form1"))
	part := w.manifest().Parts[0]
	w.put(t, strings.Replace(part.Path, "-0000.", "-0077.", 1), w.get(t, part.Path))
	w.remove(t, part.Path)
	for name, c := range map[string]struct {
		args []string
		code int
		told []string
	}{
		"verify": {[]string{"verify", file}, exit.Data, []string{"formetl clean" + quoted + " --unlisted\n", "formetl run" + quoted + " --from 2026-01-01 --to 2026-02-01\n"}},
		"state":  {[]string{"state", "show", file}, exit.OK, []string{"`formetl clean" + quoted + " --unlisted`"}},
		"run":    {[]string{"run", file}, exit.CantCreate, []string{"`formetl run" + quoted + " --full`", "`formetl clean" + quoted + " --unlisted`"}},
	} {
		code, stdout, stderr := w.do(append(c.args, given...)...)
		for _, want := range c.told {
			if code != c.code || !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s ends with %d, and %q is missing: %s%s", name, code, want, stdout, stderr)
			}
		}
	}
}

// TestVerifyRange: verify shows the range of the parts, and not that of the last run. A
// path at which nothing lies is wrong usage.
func TestVerifyRange(t *testing.T) {
	w := verifiedWorld(t, "parquet", "")
	w.must("run", w.file, "--from", "2026-02-01", "--to", "2026-03-01")
	for _, command := range []string{"verify", "state"} {
		args := map[string][]string{"verify": {"verify", w.file}, "state": {"state", "show", w.file}}[command]
		if code, stdout, stderr := w.do(args...); code != 0 || !strings.Contains(stdout, "3 parts, ") || !strings.Contains(stdout, "2026-01-01 00:00:00 to 2026-04-01 00:00:00 (exclusive)") {
			t.Errorf("%s: %d: %s%s", command, code, stdout, stderr)
		}
	}
	lake := filepath.Join(filepath.Dir(w.file), "lake")
	for path, want := range map[string]string{
		"nothere": "there is nothing at nothere", lake + "/form1/nothing.csv": "a dataset lies at " + lake + "/form1/", lake + "/other/": "there is nothing at",
	} {
		code, stdout, stderr := w.do("verify", path)
		if code != exit.Usage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%s ends with %d: %s%s", path, code, stdout, stderr)
		}
	}
}

// TestVerifyAgainstService: with --against-service a result that was deleted or added at
// the service is found in its window, at a request for each window.
func TestVerifyAgainstService(t *testing.T) {
	w := verifiedWorld(t, "parquet", "")
	windows := len(w.manifest().Parts)
	check := func(want int, kinds string) string {
		t.Helper()
		w.service.Reset()
		code, stdout, stderr := w.do("verify", w.file, "--against-service")
		if code != want || !strings.Contains(stdout, kinds) {
			t.Fatalf("it ends with %d: %s%s", code, stdout, stderr)
		}
		if n := len(w.service.Log()); n != windows {
			t.Errorf("%d requests for %d windows", n, windows)
		}
		return stdout
	}
	check(exit.OK, "sound")
	m := w.manifest()
	w.form.Delete(m.Parts[0].MinID)
	told := check(exit.Data, "count")
	if !strings.Contains(told, m.Parts[0].Path) || strings.Contains(told, m.Parts[1].Path) {
		t.Errorf("another part is named: %s", told)
	}
	w.must("run", w.file)
	check(exit.OK, "sound")
	result, ok := w.form.Get(m.Parts[1].MinID)
	if !ok {
		t.Fatal("no such result")
	}
	result.ID = 0
	if _, err := w.form.Insert(result); err != nil {
		t.Fatal(err)
	}
	check(exit.Data, "count")
	if code, _, stderr := w.do("verify", filepath.Dir(w.file)+"/lake/form1", "--against-service"); code != exit.Usage {
		t.Errorf("a path ends with %d: %s", code, stderr)
	}
}

// TestVerifyFiles: single files of every format and the children of lists are sound, and a
// byte that was changed is found in each. A path is checked as a definition is.
func TestVerifyFiles(t *testing.T) {
	_, server := newService(testKey, verifiedForm(), smallForm())
	t.Cleanup(server.Close)
	dir := t.TempDir()
	names := []string{"a.csv", "b.csv.gz", "c.ndjson", "d.ndjson.zst", "e.json", "f.parquet", "g.arrow", "h.xlsx"}
	var text strings.Builder
	text.WriteString("forms: [form1]\nschema: {columns: [{name: id, from: result_id, type: int64}, {name: colours, from: \"item:12\", type: list<string>, explode: true, list_as: columns}]}\nload:\n")
	for _, name := range names {
		text.WriteString("  - path: " + name + "\n")
	}
	text.WriteString("  - path: sheet.csv\n    csv: {profile: excel}\n  - path: lake/\n    format: csv\n")
	file := pipelineFile(t, dir, "files", server.URL, "", text.String())
	do := func(args ...string) (int, string) {
		var out, told bytes.Buffer
		code := Main(args, strings.NewReader(""), &out, &told, func(name string) (string, bool) { return testKey, name == "FORMETL_API_KEY" })
		return code, out.String() + told.String()
	}
	if code, told := do("run", file); code != 0 {
		t.Fatalf("%d: %s", code, told)
	}
	code, told := do("verify", file, "--against-service")
	if n := strings.Count(told, ": sound\n"); code != 0 || n != 2*(len(names)+2) {
		t.Fatalf("it ends with %d, and %d outputs are sound: %s", code, n, told)
	}
	if code, told := do("verify", filepath.Join(dir, "lake"), filepath.Join(dir, "lake__colours")+"/", filepath.Join(dir, "h.xlsx")); code != 0 || strings.Count(told, ": sound\n") != 3 {
		t.Errorf("paths end with %d: %s", code, told)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(data)
		changed[len(changed)/2] ^= 1
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, told := do("verify", path); code != exit.Data || !strings.Contains(told, "sha256") {
			t.Errorf("%s ends with %d: %s", name, code, told)
		}
	}
	if code, told := do("verify", filepath.Join(dir, "nothing.csv")); code != exit.Usage || !strings.Contains(told, "there is nothing at") {
		t.Errorf("nothing ends with %d: %s", code, told)
	}
	// A part of the dataset is mended by a run of everything, which spares the files.
	parts, err := filepath.Glob(filepath.Join(dir, "lake", "*.csv"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("%v, %v", parts, err)
	}
	if err := os.Truncate(parts[0], 10); err != nil {
		t.Fatal(err)
	}
	if _, told := do("verify", file); !strings.Contains(told, "to mend it  formetl run "+file+"\n") || strings.Contains(told, "--from") {
		t.Errorf("a part beside files: %s", told)
	}
	if _, told := do("verify", parts[0]); !strings.Contains(told, "a dataset lies at "+filepath.Join(dir, "lake")+"/") || strings.Contains(told, "to mend") {
		t.Errorf("a part alone: %s", told)
	}
	if _, told := do("verify", dir); !strings.Contains(told, "a dataset lies at "+filepath.Join(dir, "lake")) {
		t.Errorf("a folder too high: %s", told)
	}
	_, _ = do("run", file)
	if code, told := do("verify", file); code != 0 {
		t.Errorf("after another run it ends with %d: %s", code, told)
	}
	if code, told := do("run", file, "--from", "2026-01-01", "--to", "2026-01-02"); code != 0 || !strings.Contains(told, "will hold the results of --from and --to alone") {
		t.Errorf("a run of a range ends with %d: %s", code, told)
	}
}
