package crashtest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// uploadsDefinition stores files. s3 are the settings of both places.
const uploadsDefinition = `version: 1
name: uploads
source: {base_url: %q, account: acme, timezone: UTC, requests: {concurrency: %d, retries: 3}}
forms: [form1]
state: state
names: id
extract: {window: 7d}
files: {path: %sfiles/, max_bytes: 60MB%s}
load: [{path: %sdays/, format: ndjson, partition: day%s}]
`

// maxResidentFiles is what a run may hold in memory while it stores files, whatever their size.
const maxResidentFiles = 97_656 // kB

// uploadsWorld is a form with uploaded files at a service that breaks them.
type uploadsWorld struct {
	*world
	service *formservice.Server
	files   int
	settled map[string]bool // files whose entry said before the run under way what became of them
	open    []int64         // results whose files the last run did not settle before it was killed
	again   int             // files that were asked for by more than one run
	peak    int64           // the most kB that a run was resident with
}

// fileRow is a row of the list of uploaded files.
type fileRow struct {
	ID     int64  `json:"result_id"`
	Item   string `json:"item"`
	N      int    `json:"n"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Path   string `json:"path"`
	Status string `json:"status"`
}

// TestUploadedFilesOfKilledRuns kills a run that stores uploaded files twice, at a service that
// cuts, changes and refuses them. In the end every file is right, or its row says why it is not
// there; nothing else lies in the folder; and no file was asked for in vain.
func TestUploadedFilesOfKilledRuns(t *testing.T) {
	needs.Slow(t)
	eachPlace(t, func(t *testing.T, k kind) {
		w := newUploadsWorld(t, k)
		for _, point := range []string{"file", "file_stored"} {
			w.fetch(fmt.Sprintf("%s:%d", point, w.files/4))
		}
		if p, ok := w.place.(prefix); ok { // as a run leaves it that dies before it marks an upload as its own
			if _, err := p.client.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String(p.path + "files/7/1-1-f-x")}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range w.open { // what was stored of them goes
			w.form.Delete(id)
			w.files--
		}
		w.fetch("")
		if most := concurrency * 2; w.again > most { // the results under way at each kill, one file each
			t.Errorf("%d files were asked for again after a kill, more than %d", w.again, most)
		}
		for _, command := range []string{"clean", "verify"} {
			if o := w.do(w.command("", command, w.definition())); o.code != 0 {
				t.Errorf("%s ends with %d:\n%s", command, o.code, o.stderr)
			}
		}
		w.check()
		w.fetch("") // nothing is left to do
	})
}

// newUploadsWorld makes a form with a file in each result. With FORMETL_TEST_LARGE there are 2,000
// files of up to 50 MB.
func newUploadsWorld(t *testing.T, k kind) *uploadsWorld {
	t.Helper()
	w := &uploadsWorld{world: &world{t: t, dir: t.TempDir(), patience: 15 * time.Minute}, files: 120, settled: map[string]bool{}}
	most := int64(1 << 20)
	if os.Getenv("FORMETL_TEST_LARGE") != "" {
		w.files, most = 2000, 50_000_000
	}
	results := make([]formservice.Result, w.files)
	for i := range results {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 20 * time.Minute).Format(formservice.WallTime)
		results[i] = formservice.Result{
			ID: int64(i + 1), Metas: []formservice.Meta{{ID: "date_finish", Value: at}, {ID: "date_update", Value: at}},
			Items: []formservice.Answer{{ID: "1", Type: "text", Index: 1, Values: []string{fmt.Sprintf("%sf-1-1-%d_..%%2f..%%2fcv.pdf", formservice.MadeFiles, i+1)}}},
		}
	}
	w.form = formservice.NewForm("form1", []formservice.Item{{ID: "1", Type: "text", Index: 1, Label: "CV"}}, results)
	w.service = &formservice.Server{
		Key: testKey, Forms: []*formservice.Form{w.form}, Files: true, FilesMax: most,
		Faults: "seed=3,file-cut=0.1,file-busy=0.05,file-change=0.03,file-missing=0.03,file-login=0.03,file-redirect=0.03,file-unsized=0.05",
	}
	server := httptest.NewServer(w.service)
	t.Cleanup(server.Close)
	w.place = disk{filepath.Join(w.dir, "out")}
	s3 := ""
	if k.s3 {
		w.place = newPrefix(t, shared.buckets.URL, "uploads-"+filepath.Base(filepath.Dir(w.dir))+"/")
		s3 = fmt.Sprintf(", s3: {endpoint: %q, path_style: true}", shared.buckets.URL)
	}
	text := fmt.Sprintf(uploadsDefinition, server.URL, concurrency, w.address(), s3, w.address(), s3)
	if err := os.WriteFile(w.definition(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// fetch runs the pipeline to its end, or into a fault point. It checks what the run asked for:
// nothing with a key, no file oftener than its tries, and none that was settled before.
func (w *uploadsWorld) fetch(fault string) {
	w.t.Helper()
	before, began := w.asked(), time.Now()
	p, resident := w.pipeline(fault), make(chan int64, 1)
	go func() {
		<-p.began
		resident <- watchResident(p.Process.Pid)
	}()
	o := w.do(p)
	if o.killed != (fault != "") || !o.killed && o.code != 0 {
		w.t.Fatalf("the run to %q ended with %d:\n%s", fault, o.code, o.stderr)
	}
	tries := map[string]int{}
	for _, r := range w.asked()[len(before):] {
		if r.Secret {
			w.t.Errorf("a file was asked for with a key: %+v", r)
		}
		if tries[r.File]++; tries[r.File] == 5 {
			w.t.Errorf("%s was asked for more than 4 times by one run", r.File)
		}
		if w.settled[r.File] {
			w.t.Errorf("%s was asked for although it was settled", r.File)
		}
	}
	for _, r := range before {
		if tries[r.File] > 0 {
			w.again++
			delete(tries, r.File)
		}
	}
	peak := <-resident
	w.peak = max(w.peak, peak)
	w.t.Logf("to %q: %s, %d requests for files, %d MB resident at most", fault, time.Since(began).Round(time.Millisecond), len(w.asked())-len(before), peak*1024/1e6)
	if peak > maxResidentFiles {
		w.t.Errorf("%d kB resident, more than %d", peak, maxResidentFiles)
	}
	w.settle()
}

// asked are the requests for files so far.
func (w *uploadsWorld) asked() []formservice.Request {
	return slices.DeleteFunc(w.service.Log(), func(r formservice.Request) bool { return r.Transaction != formservice.TransactionFile })
}

// settle notes the files of which an entry tells what became of them. Each file in the folder
// stands in an entry.
func (w *uploadsWorld) settle() {
	w.t.Helper()
	names, err := w.names(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	known := map[string]bool{}
	w.open = nil
	for _, name := range names {
		if !strings.HasPrefix(name, "files/.formetl/files/") || path.Ext(name) != ".json" {
			continue
		}
		data, err := w.get(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		var entry struct {
			Files []struct{ Path, Status string }
		}
		id, wrong := strconv.ParseInt(strings.TrimSuffix(path.Base(name), ".json"), 10, 64)
		if err := errors.Join(wrong, json.Unmarshal(data, &entry)); err != nil || len(entry.Files) != 1 {
			w.t.Fatalf("%s holds %s: %v", name, data, err)
		}
		known["files/"+entry.Files[0].Path] = true
		switch entry.Files[0].Status {
		case "":
			w.open = append(w.open, id)
		case "failed":
		default:
			w.settled[linkedName(id)] = true
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "files/") && !strings.HasPrefix(name, "files/.formetl/") && !known[name] {
			w.t.Errorf("%s stands in no entry", name)
		}
	}
}

// linkedName is the decoded name of the file of a result.
func linkedName(id int64) string { return fmt.Sprintf("f-1-1-%d_../../cv.pdf", id) }

// check compares the list of files with the folder and the service.
func (w *uploadsWorld) check() {
	w.t.Helper()
	names, err := w.names(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	lying, statuses, listed, bytes := map[string]bool{}, map[string]int{}, map[int64]bool{}, int64(0)
	var rows []fileRow
	for _, name := range names {
		folder, below, _ := strings.Cut(name, "/")
		switch {
		case folder == "files" && !strings.HasPrefix(below, ".formetl/files/"):
			lying[below] = true
		case folder == "days__files" && path.Ext(name) == ".ndjson":
			rows = append(rows, w.rowsIn(name)...)
		case !slices.Contains([]string{"files", "days", "days__files", "days.codebook.csv", "days.schema.json", "days__files.codebook.csv", "days__files.schema.json"}, folder):
			w.t.Errorf("%s lies outside the folders", name)
		}
	}
	for _, r := range rows {
		statuses[r.Status]++
		if listed[r.ID] {
			w.t.Errorf("the file of result %d is listed twice", r.ID)
		}
		listed[r.ID] = true
		if !w.explained(r) {
			w.t.Errorf("nothing that the service did explains %+v", r)
		}
		if r.Status != "stored" {
			continue
		}
		data, err := w.get(w.t.Context(), "files/"+r.Path)
		if err != nil {
			w.t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		is := formservice.File{Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
		if is != (formservice.File{Size: r.Bytes, SHA256: r.SHA256}) || !slices.Contains(w.service.FileOf(linkedName(r.ID)), is) {
			w.t.Errorf("%s holds %+v, and is listed as %+v", r.Path, is, r)
		}
		if !lying[r.Path] {
			w.t.Errorf("%s is listed twice, or is not there", r.Path)
		}
		delete(lying, r.Path)
		bytes += r.Bytes
	}
	if len(lying) > 0 || len(rows) != w.files {
		w.t.Errorf("%d rows for %d files; no list has %v", len(rows), w.files, lying)
	}
	if left, err := w.uploads(w.t.Context()); err != nil || len(left) > 0 {
		w.t.Errorf("there are unfinished uploads: %v, %v", left, err)
	}
	w.t.Logf("%d files, %d MB: %v; %d MB resident at most", len(rows), bytes/1e6, statuses, w.peak*1024/1e6)
}

// rowsIn reads a part of the list of files.
func (w *uploadsWorld) rowsIn(name string) (rows []fileRow) {
	w.t.Helper()
	data, err := w.get(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var r fileRow
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			w.t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// explained tells whether the service did to a file what its status says. The bytes of stored files
// are checked apart.
func (w *uploadsWorld) explained(r fileRow) bool {
	fault := map[string]formservice.Fault{"missing": formservice.FaultMissing, "forbidden": formservice.FaultLogin, "refused": formservice.FaultRedirect, "changed": formservice.FaultChange}[r.Status]
	asked := slices.DeleteFunc(w.asked(), func(a formservice.Request) bool { return a.File != linkedName(r.ID) })
	met := slices.ContainsFunc(asked, func(a formservice.Request) bool { return a.Fault == fault })
	return met || r.Status == "stored" || r.Status == "failed" && len(asked) >= 4
}
