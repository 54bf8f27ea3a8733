package output_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/idset"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/pipelinestest"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/pipelines/reconcile"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/transform"
)

// These tests write results that are in memory. How they come from a service, and runs as
// a whole, are tested in package pipelines.

// run is what a run of a definition gives its outputs.
type run struct {
	dir    string
	def    *definition.Definition
	full   bool
	runs   int                                         // so far
	day    string                                      // of the results
	added  []schemas.Column                            // that the results had besides the schema's
	seen   transform.Seen                              // of the colours
	open   func(root string) (load.Destination, error) // nil: the local disk
	log    bytes.Buffer
	stdout bytes.Buffer
	drift  []string
}

// columnOf describes a column as "name type source".
func columnOf(t *testing.T, text string) schemas.Column {
	t.Helper()
	words := strings.Fields(text)
	kind, err := schemas.ParseType(words[1])
	from, err2 := schemas.ParseSource(words[2])
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return schemas.Column{Name: words[0], Type: kind, From: from}
}

func schemaOf(t *testing.T, columns ...string) *schemas.Schema {
	t.Helper()
	s := &schemas.Schema{Name: "s", Unknown: schemas.UnknownIgnore}
	for _, text := range append([]string{"id int64 result_id"}, columns...) {
		s.Columns = append(s.Columns, columnOf(t, text))
	}
	return s
}

// newRun is a run with three columns, of which one is a list.
func newRun(t *testing.T, dir string, outputs ...definition.Output) *run {
	t.Helper()
	def := pipelinestest.Definition(dir, definition.Source{Account: "acme", Zone: time.UTC}, outputs...)
	def.Extract.From = extracttest.Wall("2026-01-02")
	def.File, def.Schema = "d.yaml", schemaOf(t, "answer string item:1", "colours list<string> item:2")
	return &run{dir: dir, def: def, day: "2026-01-02"}
}

func (r *run) job() *output.Job {
	r.runs++
	o := pipelinestest.Options()
	open := o.BuiltIn.Open
	o.BuiltIn.Open = func(ctx context.Context, root string, out definition.Output) (load.Destination, error) {
		if r.open != nil {
			return r.open(root)
		}
		return open(ctx, root, out)
	}
	return &output.Job{
		Def: r.def, Form: r.def.Forms[0], RunID: fmt.Sprint("run", r.runs), Full: r.full, BuiltIn: o.BuiltIn, Stdout: &r.stdout,
		Now: func() time.Time { return extracttest.Wall("2026-02-01") }, Log: slog.New(slog.NewJSONHandler(&r.log, nil)), At: func(string) {},
		Encoders: reading.NewSlots(2), Requests: func() load.Requests { return load.Requests{} }, Drift: func(what string) { r.drift = append(r.drift, what) },
	}
}

// commit writes rows, which are given as the JSON behind their ids, and what was rejected.
func (r *run) commit(t *testing.T, rows map[int64]string, rejects ...transform.Reject) ([]output.Report, error) {
	t.Helper()
	schema := r.def.Schema
	if schema == nil {
		schema = schemaOf(t, "answer string item:1")
	}
	lines := make([]string, 0, len(rows))
	from := extracttest.Wall(r.day)
	w := &reading.Window{Planned: extract.Planned{Window: extract.Window{From: from, To: from.AddDate(0, 0, 1)}, Count: extract.Unknown}}
	w.IDs, w.Rejects = idset.Of(slices.Collect(maps.Keys(rows))...).Union(checkpoint.RejectedIDs(rejects)), rejects
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		lines = append(lines, fmt.Sprintf(`{"id": %d%s}`, id, rows[id]))
	}
	w.Stats = transform.Stats{Rows: int64(len(rows)), Rejected: int64(len(rejects)), Added: r.added, Seen: map[schemas.Source]transform.Seen{{Kind: schemas.FromItem, ID: "2"}: r.seen}}
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schemas.ArrowSchema(slices.Concat(schema.Columns, r.added)), strings.NewReader("["+strings.Join(lines, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	i := reading.Interval{Given: extract.Window{From: from}, Asked: w.Planned.Window, Read: w.Planned.Window, Complete: extracttest.Wall("2026-02-01")}
	snapshot := reconcile.Looked(i, w, []arrow.RecordBatch{batch}, schema, nil, load.Verified{Extracted: w.Results(), Match: true})
	snapshot.Replaced = reconcile.Replaced{Read: i.Read, Full: r.full}

	set := output.New(r.job())
	err = set.Open(t.Context())
	if err == nil {
		err = set.Commit(t.Context(), snapshot, func(context.Context) {})
	}
	return set.Reports(), errors.Join(err, set.Close(t.Context()))
}

// files returns what lies in the folder of a run.
func (r *run) files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, r.dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// manifest reads the manifest of that name.
func (r *run) manifest(t *testing.T, name string) *load.Manifest {
	t.Helper()
	m, err := load.DecodeManifest([]byte(r.files(t)[name]))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCommit(t *testing.T) {
	r := newRun(t, t.TempDir(),
		definition.Output{Path: "f.csv", Format: "csv"},
		definition.Output{Path: "set/", Format: "ndjson", Partition: definition.PartitionDay},
	)
	r.def.Schema.Columns[2].Explode = true
	if err := r.def.Explode(); err != nil {
		t.Fatal(err)
	}
	r.def.Outputs = append(r.def.Outputs, definition.Output{Path: definition.StdoutPath, Format: "ndjson"})
	rows := map[int64]string{3: `, "answer": "a", "colours": ["red", "blue"]`, 5: `, "answer": null, "colours": []`, 9: `, "answer": "c", "colours": null`}
	reports, err := r.commit(t, rows, transform.Reject{ResultID: 7, Column: "answer", Raw: "x", Reason: "bad"}, transform.Reject{ResultID: 4, Column: "answer", Raw: "y", Reason: "bad"})
	if err != nil {
		t.Fatal(err)
	}
	lines := `{"id":3,"answer":"a","colours":["red","blue"]}` + "\n" + `{"id":5,"answer":null,"colours":[]}` + "\n" + `{"id":9,"answer":"c","colours":null}` + "\n"
	letters := func(to string) string {
		line := `{"result_id":%d,"column":"answer","raw":"%s","reason":"bad","window":"2026-01-02 00:00:00/%s"}` + "\n"
		return fmt.Sprintf(line, 4, "y", to) + fmt.Sprintf(line, 7, "x", to)
	}
	part := "set/dt=2026-01-02/part-20260102T000000-20260103T000000-000001-0000.ndjson"
	files := r.files(t)
	for name, want := range map[string]string{
		"f.csv":               "id,answer,colours\n3,a,red|blue\n5,,\"\"\n9,c,\n",
		"f__colours.csv":      "id,position,colours\n3,1,red\n3,2,blue\n",
		part:                  lines,
		"f.csv.rejects.jsonl": letters(".."),
		"set/" + load.RejectsName(r.manifest(t, "set/_manifest.json").Parts[0].Letters): letters("2026-01-03 00:00:00"),
	} {
		if files[name] != want {
			t.Errorf("%s holds %q, want %q", name, files[name], want)
		}
	}
	if r.stdout.String() != lines {
		t.Errorf("standard output is %q", r.stdout.String())
	}
	for i, want := range []struct {
		rows     int64
		rejected int64
		manifest string
		letters  string
	}{
		{3, 2, "f.csv.manifest.json", "f.csv.rejects.jsonl"},
		{3, 2, "set/_manifest.json", "set/_rejects/"},
		{2, 0, "f__colours.csv.manifest.json", ""},
		{2, 0, "set__colours/_manifest.json", ""},
		{3, 0, "", ""},
	} {
		out := reports[i]
		if out.Rows != want.rows || out.Parts != 1 || out.Bytes == 0 || strings.TrimPrefix(out.DeadLetters, r.dir+"/") != want.letters {
			t.Errorf("the report is %+v, want %+v", out, want)
		}
		if want.manifest == "" {
			continue
		}
		m := r.manifest(t, want.manifest)
		if p := m.Parts[0]; p.Rows != want.rows || p.Rejected != want.rejected || p.MinID != 3 || p.MaxID != 9 || p.Bytes != out.Bytes || p.To.String() != "2026-01-03 00:00:00" || m.Rejected != 2 {
			t.Errorf("%s: %+v, rejected %d", want.manifest, p, m.Rejected)
		}
		if set, isSet := strings.CutSuffix(want.manifest, load.ManifestName); isSet != !m.Watermark.IsZero() || isSet != (m.Parts[0].IDs != "") || isSet && files[set+load.IDsName(m.Parts[0].IDs)] == "" {
			t.Errorf("%s: watermark %s, ids %q", want.manifest, m.Watermark, m.Parts[0].IDs)
		}
	}

	// Equal results change no object, and others replace theirs.
	again := func(rows map[int64]string) map[string]string {
		t.Helper()
		if _, err := r.commit(t, rows); err != nil {
			t.Fatal(err)
		}
		return r.files(t)
	}
	if files = again(rows); files[part] != lines || files["f.csv.rejects.jsonl"] != "" || r.manifest(t, "set/_manifest.json").Parts[0].Rejected != 0 {
		t.Errorf("after the same rows and no rejects there is %v", slices.Sorted(maps.Keys(files)))
	}
	delete(rows, 9)
	if files = again(rows); files[part] != "" || len(r.manifest(t, "set/_manifest.json").Parts) != 1 {
		t.Errorf("the old part is left of %v", slices.Sorted(maps.Keys(files)))
	}
	if _, err := r.commit(t, nil, transform.Reject{ResultID: 4}); err != nil {
		t.Fatal(err)
	}
	child, own := r.manifest(t, "set__colours/_manifest.json").Parts, r.manifest(t, "set/_manifest.json").Parts
	if len(child) > 0 || len(own) != 1 || own[0].Rows != 0 || own[0].Rejected != 1 || own[0].IDs != "" { // it accounts for the result
		t.Errorf("of rejects alone the parts are %+v, and those of the child %+v", own, child)
	}
	if files = again(nil); files["f.csv"] != "id,answer,colours\n" || len(r.manifest(t, "set/_manifest.json").Parts) != 0 {
		t.Errorf("without results the file holds %q, and there is %v", files["f.csv"], slices.Sorted(maps.Keys(files)))
	}

	// Nothing is written beside parts that no manifest lists, unless the run replaces them.
	again(rows)
	if err := os.Remove(filepath.Join(r.dir, "set", load.ManifestName)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.commit(t, rows); !strings.HasPrefix(extracttest.MustAs[*definition.Fault](t, err).Cure, "restore the manifest") {
		t.Errorf("the error is %v", err)
	}
	r.full = true
	before := strings.Join(slices.Sorted(maps.Keys(r.files(t))), " ")
	after := strings.Join(slices.Sorted(maps.Keys(again(rows))), " ")
	if strings.Count(after, "set/dt=2026-01-02/part-") != 1 || strings.Count(before, "set/dt=2026-01-02/part-") != 1 || before == after {
		t.Errorf("after --full there is %s, and before %s", after, before)
	}
}

// TestDatasetThatTheDefinitionNoLongerFits is refused and left as it is, by a plan too, and
// replaced whole by --full.
func TestDatasetThatTheDefinitionNoLongerFits(t *testing.T) {
	declare := func(columns ...string) func(*definition.Definition) {
		return func(d *definition.Definition) { d.Schema = schemaOf(t, columns...) }
	}
	column := func(at int, change func(*schemas.Column)) func(*definition.Definition) {
		return func(d *definition.Definition) {
			d.Schema = schemaOf(t, "answer string item:1", "colours list<string> item:2")
			change(&d.Schema.Columns[at])
		}
	}
	exploded := func(kind string) func(*definition.Definition) {
		return func(d *definition.Definition) {
			d.Schema = schemaOf(t, "answer string item:1", "colours "+kind+" item:2")
			d.Schema.Columns[2].Explode = true
			if err := d.Explode(); err != nil {
				t.Fatal(err)
			}
			d.Outputs = d.Outputs[1:] // the child alone
		}
	}
	out := func(change func(*definition.Output)) func(*definition.Definition) {
		return func(d *definition.Definition) { change(&d.Outputs[0]) }
	}
	same := func(*definition.Definition) {}
	one, two := extract.Criterion{Column: "1", Operator: extract.OpNotEmpty}, extract.Criterion{Column: "2", Operator: extract.OpNotEmpty}
	for name, c := range map[string]struct {
		was, is func(*definition.Definition)
		what    string // "": the definition still fits
	}{
		"nothing":              {same, same, ""},
		"format":               {same, out(func(o *definition.Output) { o.Format = "ndjson" }), "format of the dataset was csv and is ndjson"},
		"partition":            {same, out(func(o *definition.Output) { o.Partition = definition.PartitionMonth }), "partition of the dataset was day and is month"},
		"no partition":         {same, out(func(o *definition.Output) { o.Partition = definition.PartitionNone }), "was day and is none"},
		"profile":              {same, out(func(o *definition.Output) { o.Profile = "excel" }), "csv profile of the dataset was strict and is excel"},
		"the same profile":     {same, out(func(o *definition.Output) { o.Profile = "strict" }), ""},
		"form":                 {same, func(d *definition.Definition) { d.Forms = []string{"form2"} }, "form of the dataset was form1 and is form2"},
		"account":              {same, func(d *definition.Definition) { d.Source.Account = "other" }, "account of the dataset was acme"},
		"timezone":             {same, func(d *definition.Definition) { d.Source.Zone = time.FixedZone("CET", 3600) }, "timezone of the dataset was UTC and is CET"},
		"view":                 {same, func(d *definition.Definition) { d.Extract.View = "11" }, "view of the dataset was none and is 11"},
		"search":               {same, func(d *definition.Definition) { d.Extract.Search.Where = []extract.Criterion{one} }, "search of the dataset was none"},
		"the same search":      {func(d *definition.Definition) { d.Extract.Search.Where = []extract.Criterion{one, two} }, func(d *definition.Definition) { d.Extract.Search.Where = []extract.Criterion{two, one} }, ""},
		"inferred since":       {same, func(d *definition.Definition) { d.Schema = nil }, "what names the columns (names:) was a schema and is id now"},
		"naming":               {func(d *definition.Definition) { d.Schema = nil }, func(d *definition.Definition) { d.Schema, d.Names = nil, schemas.ByLabel }, "what names the columns (names:) was id and is label now"},
		"type":                 {same, declare("answer int64 item:1"), "column answer was string and is int64 now"},
		"name":                 {same, declare("reply string item:1"), "the column from item:1 was answer and is reply"},
		"the name of another":  {same, declare("Answer string item:3"), "column answer was from item:1 and is from item:3"},
		"a column less":        {same, declare("colours list<string> item:2"), "column answer was from item:1 and is left out now"},
		"a rule":               {same, column(1, func(c *schemas.Column) { c.PII = schemas.PII{Kind: schemas.PIIRedact} }), "column answer was unprotected and is pii: redact"},
		"lists by other words": {same, column(2, func(c *schemas.Column) { c.ListAs = schemas.ListJoined }), ""},
		"lists as columns":     {same, column(2, func(c *schemas.Column) { c.ListAs, c.Choices = schemas.ListColumns, []string{"1"} }), "column colours was list_as: joined and is list_as: columns"},
		"lists as json":        {same, column(2, func(c *schemas.Column) { c.ListAs = schemas.ListJSON }), "column colours was list_as: joined and is list_as: json"},
		"the same child":       {exploded("list<string>"), exploded("list<string>"), ""},
		"a child's type":       {exploded("list<string>"), exploded("list<int64>"), "column colours was string and is int64 now"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, t.TempDir(), definition.Output{Path: "set/", Format: "csv", Partition: definition.PartitionDay})
			before := *r.def
			before.Outputs = slices.Clone(r.def.Outputs)
			c.was(r.def)
			if _, err := r.commit(t, map[int64]string{1: `, "colours": ["1"]`}); err != nil {
				t.Fatal(err)
			}
			files := r.files(t)
			r.def = &before
			c.is(r.def)
			_, looked := output.Look(t.Context(), r.job())
			_, err := r.commit(t, map[int64]string{1: `, "colours": ["1"]`})
			if c.what == "" {
				if err := errors.Join(looked, err); err != nil {
					t.Error(err)
				}
				return
			}
			for _, err := range []error{looked, err} {
				if err == nil || !strings.Contains(err.Error(), c.what) || !strings.Contains(extracttest.MustAs[*definition.Fault](t, err).Cure, "--full") {
					t.Errorf("the error is %v, want %s", err, c.what)
				}
			}
			if !maps.Equal(files, r.files(t)) {
				t.Error("a dataset that was refused has changed")
			}
			r.full = true
			if _, err := r.commit(t, map[int64]string{1: `, "colours": ["1"]`}); err != nil {
				t.Fatal(err)
			}
			parts := 0
			for name := range r.files(t) {
				if strings.Contains(name, "/part-") {
					parts++
				}
			}
			if parts != 1 {
				t.Errorf("%d parts after --full", parts)
			}
		})
	}
}

// TestOneOutputFails: the others are committed, and the report of the one tells what it
// still holds, where that is known. The run fails where none is left.
func TestOneOutputFails(t *testing.T) {
	disk := errors.New("no space left on device")
	isUnusable := func(err error) bool { return errors.Is(err, load.ErrUnusable) }
	isDisk := func(err error) bool { return errors.Is(err, disk) }
	isHeld := is[*load.HeldError]
	replaced := func(name, by string) func(*testing.T, *run) { // an output by a file in its place
		return func(t *testing.T, r *run) {
			err := os.RemoveAll(filepath.Join(r.dir, name))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(r.dir, by)), 0o750)
			}
			if err := errors.Join(err, os.WriteFile(filepath.Join(r.dir, by), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	held := func(root, scope string) func(*testing.T, *run) {
		return func(t *testing.T, r *run) {
			d, err := local.New(filepath.Join(r.dir, root))
			if err != nil {
				t.Fatal(err)
			}
			lease, err := d.Acquire(t.Context(), scope, load.Holder{RunID: "another", Pipeline: "nightly", PID: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lease.Release(context.WithoutCancel(t.Context())) })
		}
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, *run)
		fails string // how the paths of outputs that fail end
		is    func(error) bool
		known bool // what the output still holds
	}{
		"a part cannot be staged":          {func(_ *testing.T, r *run) { r.open = failing(r.dir+"/set/", "stage", disk) }, "set/", isDisk, true},
		"the manifest cannot be written":   {func(_ *testing.T, r *run) { r.open = failing(r.dir+"/set/", "put", disk) }, "set/", isDisk, true},
		"nothing can be staged":            {func(_ *testing.T, r *run) { r.open = failing("", "stage", disk) }, "", isDisk, true},
		"a past that does not fit":         {func(_ *testing.T, r *run) { r.def.Outputs[1].Format = "csv" }, "set/", is[*definition.Fault], true},
		"a file in the dataset's place":    {replaced("set", "set"), "set/", isUnusable, false},
		"a folder in the file's place":     {replaced("f.ndjson", "f.ndjson/x"), "f.ndjson", isUnusable, false},
		"the lease of the dataset is held": {held("set", ""), "set/", isHeld, false},
		"the lease of the file is held":    {held("", "f.ndjson"), "f.ndjson", isHeld, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, t.TempDir(), definition.Output{Path: "f.ndjson", Format: "ndjson"}, definition.Output{Path: "set/", Format: "ndjson", Partition: definition.PartitionDay})
			first, err := r.commit(t, map[int64]string{1: "", 2: ""})
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(t, r)
			reports, err := r.commit(t, map[int64]string{3: ""})
			failed := extracttest.MustAs[*output.OutputsError](t, err)
			if !c.is(err) || len(reports) != 2 {
				t.Fatalf("%d reports, %v", len(reports), err)
			}
			for i, report := range reports {
				if !strings.HasSuffix(report.Path, c.fails) {
					if report.Error != "" || report.Rows != 1 {
						t.Errorf("%+v", report)
					}
					continue
				}
				failed.Errors = failed.Errors[1:]
				if before := first[i]; report.Error == "" || c.known && (report.Rows != 2 || report.Bytes != before.Bytes || report.Parts != 1 || report.Watermark != before.Watermark) {
					t.Errorf("%+v, and before %+v", report, before)
				}
			}
			if len(failed.Errors) > 0 {
				t.Errorf("%v are told besides", failed.Errors)
			}
			for name := range r.files(t) {
				if strings.Contains(name, "run2") && !is[*load.CommitError](err) { // a recorded commit waits for the next run
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

func is[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// failing gives destinations of which those at roots that begin so fail at staging or putting.
func failing(prefix, at string, err error) func(string) (load.Destination, error) {
	return func(root string) (load.Destination, error) {
		d, opened := local.New(root)
		if opened == nil && strings.HasPrefix(root, prefix) {
			return &broken{d, at, err}, nil
		}
		return d, opened
	}
}

type broken struct {
	*local.Destination
	at  string
	err error
}

func (b *broken) Stage(ctx context.Context, run, name string) (load.Upload, error) {
	if b.at == "stage" {
		return nil, b.err
	}
	return b.Destination.Stage(ctx, run, name)
}

func (b *broken) Put(ctx context.Context, name string, data []byte, version string) error {
	if b.at == "put" {
		return b.err
	}
	return b.Destination.Put(ctx, name, data, version)
}

// TestChildThatNobodyAsksFor is told of once: it holds values still.
func TestChildThatNobodyAsksFor(t *testing.T) {
	r := newRun(t, t.TempDir(), definition.Output{Path: "set/", Format: "csv"})
	r.def.Schema.Columns[2].Explode = true
	if err := r.def.Explode(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false} {
		if i > 0 {
			r.def.Schema.Columns[2].Explode, r.def.Outputs = false, r.def.Outputs[:1]
		}
		r.drift = nil
		if _, err := r.commit(t, map[int64]string{1: `, "colours": ["red"]`}); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(strings.Join(r.drift, " "), "set__colours/ still has its old values"); told != want {
			t.Errorf("run %d: drift %v", i, r.drift)
		}
	}
}

// TestCodebookRefused: the data are committed all the same, log and report say what to do,
// and the next run writes it.
func TestCodebookRefused(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		at      func(root string) (load.Destination, error) // where the codebook lies
		foreign bool
		want    string
	}{
		"foreign": {func(root string) (load.Destination, error) { return local.New(root) }, true, "set.codebook.csv already exists, and formetl did not write it"},
		"open":    {func(string) (load.Destination, error) { return nil, refused }, false, "refused"},
		"get": {func(root string) (load.Destination, error) {
			d, err := local.New(root)
			return &unreadable{d, refused}, err
		}, false, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, t.TempDir(), definition.Output{Path: "out/f.csv", Format: "csv"}, definition.Output{Path: "set/", Format: "ndjson"})
			theirs := filepath.Join(r.dir, "set.codebook.csv")
			if c.foreign {
				if err := os.WriteFile(theirs, []byte("my own notes"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r.open = func(root string) (load.Destination, error) {
				if filepath.Clean(root) == r.dir {
					return c.at(root)
				}
				return local.New(root)
			}
			reports, err := r.commit(t, map[int64]string{1: ""})
			if err != nil {
				t.Fatal(err)
			}
			if reports[0].CompanionsError != "" || !strings.Contains(reports[1].CompanionsError, c.want) || reports[1].Rows != 1 || reports[1].Error != "" {
				t.Errorf("%+v", reports)
			}
			if hints := strings.Count(r.log.String(), "codebook: false in the output"); (hints == 1) != c.foreign {
				t.Errorf("%d hints in %s", hints, r.log.String())
			}
			files := r.files(t)
			if c.foreign && files["set.codebook.csv"] != "my own notes" || files["set.schema.json"] != "" || files["out/f.codebook.csv"] == "" {
				t.Errorf("there is %v", slices.Sorted(maps.Keys(files)))
			}
			if r.open = nil; c.foreign {
				if err := os.Remove(theirs); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.commit(t, map[int64]string{1: ""}); err != nil || r.files(t)["set.codebook.csv"] == "" {
				t.Errorf("the next run wrote none, %v", err)
			}
		})
	}
}

// unreadable is a destination whose objects nobody may read.
type unreadable struct {
	load.Destination
	err error
}

func (u *unreadable) Get(context.Context, string) ([]byte, string, error) { return nil, "", u.err }

// TestChoices: a dataset keeps the choices of earlier runs, and new ones follow. Where there
// are too many, the output fails before any of it is written, and others do not.
func TestChoices(t *testing.T) {
	r := newRun(t, t.TempDir(), definition.Output{Path: "set/", Format: "csv", Partition: definition.PartitionDay}, definition.Output{Path: "f.ndjson", Format: "ndjson"})
	r.def.Schema.Columns[2].ListAs = schemas.ListColumns
	for _, c := range []struct {
		day, rows string
		seen      []string
		header    string
		many      bool
	}{
		{"2026-01-02", `, "colours": ["red", "blue"]`, []string{"red", "blue"}, "id,answer,colours__blue,colours__red", false},
		{"2026-01-03", `, "colours": ["aqua", "Red"]`, []string{"red", "aqua", "Red"}, "id,answer,colours__blue,colours__red,colours__red_2,colours__aqua", false},
		{"2026-01-04", `, "colours": ["more"]`, nil, "", true},
	} {
		before := r.files(t)
		r.day, r.seen = c.day, transform.Seen{Many: c.many, Choices: map[string]int64{}}
		for _, choice := range c.seen {
			r.seen.Choices[choice] = 1
		}
		_, err := r.commit(t, map[int64]string{1: c.rows})
		if is[*definition.Fault](err) != c.many || c.many != (err != nil) || c.many && !strings.Contains(extracttest.MustAs[*definition.Fault](t, err).Cure, "list_as: joined") {
			t.Fatalf("%s: %v", c.day, err)
		}
		files := r.files(t)
		for name, data := range files {
			header, _, _ := strings.Cut(data, "\n")
			if isNew := before[name] == "" && strings.Contains(name, "set/dt="); isNew && (c.many || header != c.header) {
				t.Errorf("%s: %s has %s, want %s", c.day, name, header, c.header)
			}
		}
		if !strings.Contains(files["f.ndjson"], strings.ReplaceAll(c.rows[len(`, "colours": `):], ", ", ",")) {
			t.Errorf("%s: the file has %s", c.day, files["f.ndjson"])
		}
	}
}

// TestOrderOfColumns holds that a dataset's columns stay where they are, whatever order the
// schema gives later, so that parts can be read by position. A single file beside it, and
// --full, follow the schema.
func TestOrderOfColumns(t *testing.T) {
	const a, b, d = "a string item:1", "b string item:2", "d string item:4"
	added := columnOf(t, "c string item:3")
	added.Inferred = true
	for name, c := range map[string]struct {
		one, two   []string
		added      []schemas.Column // by both runs
		full       bool
		want, file string   // the columns of the dataset and of the file
		parts      []string // the columns of the dataset's parts
	}{
		"reordered":                 {one: []string{a, b}, two: []string{b, a}, want: "id,a,b", file: "id,b,a", parts: []string{"id,a,b", "id,a,b"}},
		"one in the middle":         {one: []string{a, b}, two: []string{d, b, a}, want: "id,a,b,d", file: "id,d,b,a", parts: []string{"id,a,b", "id,a,b,d"}},
		"before one that was added": {one: []string{a, b}, two: []string{d, a, b}, added: []schemas.Column{added}, want: "id,a,b,c,d", file: "id,d,a,b,c", parts: []string{"id,a,b,c", "id,a,b,c,d"}},
		"full":                      {one: []string{a, b}, two: []string{b, d, a}, full: true, want: "id,b,d,a", file: "id,b,d,a", parts: []string{"id,b,d,a"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, t.TempDir(), definition.Output{Path: "set/", Format: "csv", Partition: definition.PartitionDay}, definition.Output{Path: "f.csv", Format: "csv"})
			r.added = c.added
			for _, run := range []struct {
				day     string
				columns []string
				full    bool
			}{{"2026-01-02", c.one, false}, {"2026-01-03", c.two, c.full}} {
				r.day, r.def.Schema, r.full = run.day, schemaOf(t, run.columns...), run.full
				r.def.Schema.Unknown = schemas.UnknownAdd
				if _, err := r.commit(t, map[int64]string{1: ""}); err != nil {
					t.Fatal(err)
				}
			}
			files := r.files(t)
			header := func(name string) string { line, _, _ := strings.Cut(files[name], "\n"); return line }
			m := r.manifest(t, "set/_manifest.json")
			columns, parts := make([]string, 0, len(m.Schema)), make([]string, 0, len(m.Parts))
			for _, column := range m.Schema {
				columns = append(columns, column.Name)
			}
			for _, p := range m.Parts {
				parts = append(parts, header("set/"+p.Path))
			}
			if got := strings.Join(columns, ","); got != c.want || header("f.csv") != c.file || !slices.Equal(parts, c.parts) {
				t.Errorf("the dataset has %s, want %s; the file %s, want %s; parts %q, want %q", got, c.want, header("f.csv"), c.file, parts, c.parts)
			}
		})
	}
}

// losing is a destination whose leases are lost when a channel is closed.
type losing struct {
	load.Destination
	lost chan struct{}
}

func (l losing) Acquire(context.Context, string, load.Holder) (load.Lease, error) { return l, nil }
func (l losing) Lost() <-chan struct{}                                            { return l.lost }
func (l losing) Release(context.Context) error                                    { return nil }

// TestGuard: a run goes on until another one has taken over every output.
func TestGuard(t *testing.T) {
	r := newRun(t, t.TempDir(), definition.Output{Path: "f.csv", Format: "csv"}, definition.Output{Path: "set/", Format: "csv"})
	job, lost := r.job(), []chan struct{}{make(chan struct{}), make(chan struct{})}
	open := job.BuiltIn.Open
	job.BuiltIn.Open = func(ctx context.Context, root string, out definition.Output) (load.Destination, error) {
		d, err := open(ctx, root, out)
		if out.Dataset() {
			return losing{d, lost[1]}, err
		}
		return losing{d, lost[0]}, err
	}
	set := output.New(job)
	if err := set.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	guarded, end := set.Guard(t.Context())
	defer end()
	close(lost[1])
	if guarded.Err() != nil {
		t.Error("it ends though an output is left")
	}
	close(lost[0])
	<-guarded.Done()
	if held, ok := errors.AsType[*load.HeldError](context.Cause(guarded)); !ok || held.Path == "" {
		t.Errorf("it ends with %v", context.Cause(guarded))
	}
}
