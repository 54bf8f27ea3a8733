package pipelines_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/schemas"
)

// withFiles is a result of a day in January with files: items 2 and 3.
func withFiles(id int64, day int, cvs []string, photo string) formservice.Result {
	r := pipelinestest.Result(id, fmt.Sprintf("2026-01-%02d 10:00:00", day), "a")
	r.Metas = append(r.Metas, formservice.Meta{ID: "date_update", Value: fmt.Sprintf("2026-02-01 11:%02d:00", id*37%60)})
	links := make([]string, len(cvs))
	for i, cv := range cvs {
		links[i] = formservice.MadeFiles + cv
	}
	r.Items = append(r.Items, formservice.Answer{ID: "2", Type: "list", Index: 2, Values: links})
	if photo != "" {
		r.Items = append(r.Items, formservice.Answer{ID: "3", Type: "text", Index: 3, Values: []string{formservice.MadeFiles + photo}})
	}
	return r
}

func formWithFiles() *formservice.Form {
	f := formservice.NewForm("form1", []formservice.Item{
		{ID: "1", Type: "text", Index: 1, Label: "Answer"}, {ID: "2", Type: "list", Index: 2, Label: "CV"}, {ID: "3", Type: "text", Index: 3, Label: "Photo"},
	}, []formservice.Result{
		withFiles(1, 1, []string{"f-1-1-1_cv.pdf", "f-1-2-1_..%2f..%2fetc%2fpasswd"}, "f-1-3-1_Foto%20Z%C3%BCrich.png"),
		withFiles(2, 2, nil, "f-1-3-2_b.png"), withFiles(3, 3, []string{"f-1-1-3_c.pdf"}, ""), withFiles(4, 3, nil, ""),
	})
	f.SetClock(func() time.Time { return extracttest.Wall("2026-02-01 12:00:00") })
	return f
}

// fileRow is a row of the list of files.
type fileRow struct {
	ID     int64  `json:"result_id"`
	Item   string `json:"item"`
	N      int    `json:"n"`
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Path   string `json:"path"`
	Status string `json:"status"`
}

// fileRows reads the parts of the list of files. It checks that each stored file holds what the
// service gave for it, and that nothing else lies in the folder.
func (w *world) fileRows() (rows []fileRow) {
	w.t.Helper()
	parts, err := filepath.Glob(w.path("days__files/*/*.ndjson"))
	if err != nil {
		w.t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, part := range parts {
		file, err := os.Open(part)
		if err != nil {
			w.t.Fatal(err)
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var r fileRow
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				w.t.Fatal(err)
			}
			rows = append(rows, r)
		}
		_ = file.Close()
	}
	for _, r := range rows {
		if r.Path == "" {
			continue
		}
		listed[r.Path] = true
		data, err := os.ReadFile(w.path("files/" + r.Path))
		if err != nil {
			w.t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		is := formservice.File{Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
		if is != (formservice.File{Size: r.Bytes, SHA256: r.SHA256}) || !slices.Contains(w.service.FileOf(w.linked(r)), is) {
			w.t.Errorf("%s holds %+v, and is listed as %+v", r.Path, is, r)
		}
	}
	for name := range tree(w.t, w.path("files")) {
		if !strings.HasPrefix(name, ".formetl/") && !listed[name] {
			w.t.Errorf("%s is in no list", name)
		}
	}
	return rows
}

// linked is the name of a row's file as it stands in a link.
func (w *world) linked(r fileRow) string {
	w.t.Helper()
	result, _ := w.service.Form("form1").Get(r.ID)
	values, _ := result.Values(r.Item)
	if len(values) < r.N {
		w.t.Fatalf("%+v is of no value of %v", r, values)
	}
	return path.Base(strings.TrimPrefix(values[r.N-1], formservice.MadeFiles))
}

// filesAsked gives the names of the files that the service was asked for since the last call.
func (w *world) filesAsked() (names []string) {
	for _, r := range w.service.Log() {
		if r.Transaction == formservice.TransactionFile {
			if r.Secret {
				w.t.Errorf("a file was asked for with a key: %+v", r)
			}
			names = append(names, r.File)
		}
	}
	w.service.Reset()
	slices.Sort(names)
	return names
}

// incrementalFiles is a definition whose days and files go on from run to run.
func (w *world) incrementalFiles() (*definition.Definition, pipelines.Options) {
	w.service.Files = true
	def := w.definition(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
	def.Extract.Incremental, def.Extract.Lookback = true, 24*time.Hour
	def.Extract.Window = extract.Period{Days: 1}
	def.Names = schemas.ByID
	def.Files = &definition.Files{Path: w.path("files") + "/", MaxBytes: 1 << 20, Concurrency: 2}
	if err := def.Explode(); err != nil {
		w.t.Fatal(err)
	}
	var runs atomic.Int64
	o := options()
	o.Now = func() time.Time {
		return extracttest.Wall("2026-02-01 20:00:00").Add(time.Duration(runs.Add(1)) * time.Second)
	}
	return def, o
}

// TestUploadedFiles follows the files of a form over the runs of a dataset: each is fetched once,
// and again when its result was edited; those of deleted results go.
func TestUploadedFiles(t *testing.T) {
	for _, generation := range []string{formservice.V1, formservice.V2} {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			form := formWithFiles()
			w := newWorld(t, form)
			if generation == formservice.V2 {
				w.byV2()
			}
			def, o := w.incrementalFiles()
			step := func(what string, asked []string, want ...string) {
				t.Helper()
				report := w.runBy(def, o)
				if got := w.filesAsked(); !slices.Equal(got, asked) {
					t.Errorf("%s: the run asks for %q, not %q", what, got, asked)
				}
				if n := report.Forms[0].Requests.Files; n != int64(len(asked)) {
					t.Errorf("%s: %d requests of files are counted", what, n)
				}
				rows := w.fileRows()
				got := make([]string, 0, len(rows))
				for _, r := range rows {
					got = append(got, fmt.Sprintf("%d/%s-%d-%s %s", r.ID, r.Item, r.N, r.Name, r.Status))
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s: the list has %q, not %q", what, got, want)
				}
			}
			photo := "1/3-1-f-1-3-1_Foto_Zürich.png stored"
			step("the first run", []string{"f-1-1-1_cv.pdf", "f-1-1-3_c.pdf", "f-1-2-1_../../etc/passwd", "f-1-3-1_Foto Zürich.png", "f-1-3-2_b.png"},
				"1/2-1-f-1-1-1_cv.pdf stored", "1/2-2-f-1-2-1_.._.._etc_passwd stored", photo, "2/3-1-f-1-3-2_b.png stored", "3/2-1-f-1-1-3_c.pdf stored")
			step("nothing changed", nil,
				"1/2-1-f-1-1-1_cv.pdf stored", "1/2-2-f-1-2-1_.._.._etc_passwd stored", photo, "2/3-1-f-1-3-2_b.png stored", "3/2-1-f-1-1-3_c.pdf stored")

			if err := os.Remove(w.path("files/3/2-1-f-1-1-3_c.pdf")); err != nil { // somebody removes a file, of a result that is edited
				t.Fatal(err)
			}
			w.put("files/.formetl/put-dead", "half")
			form.SetClock(func() time.Time { return extracttest.Wall("2026-02-01 12:30:00") })
			for _, r := range []formservice.Result{withFiles(1, 1, []string{"f-1-9-1_new.pdf"}, "f-1-3-1_Foto%20Z%C3%BCrich.png"), withFiles(3, 3, []string{"f-1-1-3_c.pdf"}, "")} {
				if err := form.Update(r); err != nil {
					t.Fatal(err)
				}
			}
			form.Delete(2)
			step("edits and a deletion", []string{"f-1-1-3_c.pdf", "f-1-3-1_Foto Zürich.png", "f-1-9-1_new.pdf"},
				"1/2-1-f-1-9-1_new.pdf stored", photo, "3/2-1-f-1-1-3_c.pdf stored")

			if _, err := os.Stat(w.path("files/.formetl/put-dead")); err == nil {
				t.Error("what a dead run half wrote is left")
			}

			def.Source.Requests.Retries = 0 // an edited file that does not come leaves its older copy, and comes later
			w.service.Decide = func(r formservice.Request) formservice.Fault {
				if r.File == "f-1-1-3_c.pdf" {
					return formservice.FaultBusy
				}
				return formservice.NoFault
			}
			form.SetClock(func() time.Time { return extracttest.Wall("2026-02-01 12:45:00") })
			if err := form.Update(withFiles(3, 3, []string{"f-1-1-3_c.pdf"}, "")); err != nil {
				t.Fatal(err)
			}
			step("a file that does not come", []string{"f-1-1-3_c.pdf"}, "1/2-1-f-1-9-1_new.pdf stored", photo, "3/2-1-f-1-1-3_c.pdf failed")
			w.service.Decide = nil
			step("it comes", []string{"f-1-1-3_c.pdf"}, "1/2-1-f-1-9-1_new.pdf stored", photo, "3/2-1-f-1-1-3_c.pdf stored")
		})
	}
}

// TestFilesThatCannotBeStored: what became of each file stands in its row. Those that failed for the
// moment are asked for again by the next run, and --strict refuses all.
func TestFilesThatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, formWithFiles())
	def, o := w.incrementalFiles()
	def.Source.Requests.Retries = 1
	broken := true
	w.service.Decide = func(r formservice.Request) formservice.Fault {
		switch {
		case r.File == "f-1-1-1_cv.pdf" && broken:
			return formservice.FaultBusy
		case r.File == "f-1-1-3_c.pdf":
			return formservice.FaultMissing
		case r.File == "f-1-3-2_b.png":
			return formservice.FaultLogin
		}
		return formservice.NoFault
	}
	def.Extract.Proof = true
	if _, err := pipelines.Run(t.Context(), def, o); err == nil || !strings.Contains(err.Error(), "did not give all uploaded files: 1 failed to download (at most 5 runs try it), 1 forbidden by the service, 1 missing at the service") {
		t.Errorf("a strict run ends with %v", err)
	}
	def.Extract.Proof = false
	status := func() string {
		rows := w.fileRows()
		all := make([]string, 0, len(rows))
		for _, r := range rows {
			all = append(all, r.Status)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	w.runBy(def, o)
	if got := status(); got != "failed forbidden missing stored stored" {
		t.Error(got)
	}
	w.filesAsked()
	broken = false
	w.runBy(def, o)
	if got, asked := status(), w.filesAsked(); got != "forbidden missing stored stored stored" || !slices.Equal(asked, []string{"f-1-1-1_cv.pdf"}) {
		t.Errorf("%s; the run asks for %q", got, asked)
	}
	o.Full = true // a person allowed what was forbidden
	w.service.Decide = nil
	w.runBy(def, o)
	if got, asked := status(), w.filesAsked(); got != "stored stored stored stored stored" || !slices.Equal(asked, []string{"f-1-1-3_c.pdf", "f-1-3-2_b.png"}) {
		t.Errorf("%s; a full run asks for %q", got, asked)
	}
}

// TestFilesOfAServiceThatIsAway: a run ends, and keeps what came, when one file after the other
// fails. The next one goes on.
func TestFilesOfAServiceThatIsAway(t *testing.T) {
	t.Parallel()
	form := formWithFiles()
	for id := int64(10); id < 40; id++ {
		if _, err := form.Insert(withFiles(id, 5, nil, fmt.Sprintf("f-1-1-%d_x", id))); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, form)
	def, o := w.incrementalFiles()
	def.Source.Requests.Retries = 0
	w.service.Decide = func(r formservice.Request) formservice.Fault {
		if r.File > "f-1-1-2" {
			return formservice.FaultBusy
		}
		return formservice.NoFault
	}
	_, err := pipelines.Run(t.Context(), def, o)
	if coded, ok := err.(interface{ ExitCode() int }); err == nil || !strings.Contains(err.Error(), "could not be fetched") || ok && coded.ExitCode() != 75 {
		t.Errorf("the run ends with %v", err)
	}
	w.filesAsked()
	w.service.Decide = nil
	w.runBy(def, o)
	if asked := w.filesAsked(); slices.Contains(asked, "f-1-1-1_cv.pdf") || slices.Contains(asked, "f-1-1-12_x") {
		t.Errorf("the next run asks again for %q", asked)
	}
	if rows := w.fileRows(); len(rows) != 35 {
		t.Errorf("%d files are listed", len(rows))
	}
}

// TestFilesThatAreNotFetched: files of a column with a rule for personal data stay where they are,
// and so do those of results that were deleted, if that is asked for.
func TestFilesThatAreNotFetched(t *testing.T) {
	t.Parallel()
	form := formWithFiles()
	w := newWorld(t, form)
	def, o := w.incrementalFiles()
	def.Files.KeepDeleted = true
	column := func(name, from string, list bool, pii schemas.PII) schemas.Column {
		source, err := schemas.ParseSource(from)
		if err != nil {
			t.Fatal(err)
		}
		c := schemas.Column{Name: name, From: source, Type: schemas.Type{Kind: schemas.String}, PII: pii}
		if list {
			c.Type = schemas.ListOf(c.Type)
		}
		return c
	}
	id := column("id", "result_id", false, schemas.PII{})
	id.Type.Kind = schemas.Int64
	def.Schema = &schemas.Schema{Unknown: schemas.UnknownIgnore, Columns: []schemas.Column{
		id, column("cv", "item:2", true, schemas.PII{}),
		column("photo", "item:3", false, schemas.PII{Kind: schemas.PIITruncate, Keep: 1000}), // the link stays as it is
	}}
	w.runBy(def, o)
	if asked := w.filesAsked(); !slices.Equal(asked, []string{"f-1-1-1_cv.pdf", "f-1-1-3_c.pdf", "f-1-2-1_../../etc/passwd"}) {
		t.Errorf("the run asks for %q", asked)
	}
	form.Delete(3)
	w.runBy(def, o)
	kept := func() bool {
		_, err := os.Stat(w.path("files/3/2-1-f-1-1-3_c.pdf"))
		return err == nil
	}
	if !kept() {
		t.Error("keep_deleted does not keep the file of a deleted result")
	}
	o.Full, def.Files.KeepDeleted, def.Extract.Verify = true, false, false
	if w.runBy(def, o); !kept() {
		t.Error("a run that compared nothing removes a file")
	}
	def.Extract.Verify = true
	if w.runBy(def, o); kept() {
		t.Error("the file of a deleted result stays")
	}
}
