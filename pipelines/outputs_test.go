package pipelines_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/extracttest"
	"github.com/formetl/formetl/extract/formservice"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/local"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/pipelinestest"
)

// hold takes a lease for the rest of the test.
func hold(t *testing.T, root, scope string) {
	t.Helper()
	d, err := local.New(root)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := d.Acquire(t.Context(), scope, load.Holder{RunID: "another", Pipeline: "nightly", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release(context.WithoutCancel(t.Context())) })
}

// TestNothingIsAskedWhereNoOutputCanBeWritten ends before the first request.
func TestNothingIsAskedWhereNoOutputCanBeWritten(t *testing.T) {
	w := newWorld(t, fourDays())
	hold(t, w.dir, "form1.ndjson")
	hold(t, w.path("days"), "")
	before := tree(t, w.dir)
	_, err := pipelines.Run(t.Context(), w.daily(fileAndDays()...), options())
	var held *load.HeldError
	if !errors.As(err, &held) || held.RunID != "another" {
		t.Errorf("error %v", err)
	}
	if n := len(w.service.Log()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	sameTree(t, before, tree(t, w.dir))
}

// TestSearchesAreEqualInAnyOrder of their criteria.
func TestSearchesAreEqualInAnyOrder(t *testing.T) {
	a := extract.Criterion{Column: "1", Operator: extract.OpContains, Term: `x "y"`}
	b := extract.Criterion{Column: "12", Operator: extract.OpNotEmpty}
	one, two := extract.Search{Where: []extract.Criterion{a, b}}, extract.Search{Where: []extract.Criterion{b, a}}
	if one.String() != two.String() || one.String() != `1 contains "x \"y\"" and 12 not_empty` {
		t.Errorf("%s, %s", one, two)
	}
	two.Any = true
	if one.String() == two.String() || (extract.Search{}).String() != "" {
		t.Errorf("%s, %s", one, two)
	}
}

// TestFullReplacesUndatedResultsToo where the range alone would not ask for them.
func TestFullReplacesUndatedResultsToo(t *testing.T) {
	form := fourDays()
	w := newWorld(t, form)
	w.run(w.definition(fileAndDays()...))
	form.Delete(50)
	if _, err := form.Insert(pipelinestest.Result(51, "", "another")); err != nil {
		t.Fatal(err)
	}
	o := options()
	var log bytes.Buffer
	o.Full, o.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
	w.runBy(w.daily(fileAndDays()...), o)
	if !strings.Contains(log.String(), "before `from` again") {
		t.Errorf("the log does not tell of a wider range: %s", &log)
	}
	w.checkDataset("days", pipelinestest.Truth(form, nil))
	w.checkFile("form1.ndjson", pipelinestest.Truth(form, inJanuary))
}

// TestFileHoldsItsRangeWhereADatasetWidensIt and each manifest is about what
// lies beside it.
func TestFileHoldsItsRangeWhereADatasetWidensIt(t *testing.T) {
	form := fourDays()
	w := newWorld(t, form)
	outputs := func() []definition.Output {
		return append(fileAndDays(), definition.Output{Path: "months/", Format: "ndjson", Partition: definition.PartitionMonth})
	}
	whole := w.definition(outputs()...)
	whole.Extract.To = extracttest.Wall("2026-03-01")
	w.run(whole)
	narrow := w.definition(outputs()...)
	narrow.Extract.From, narrow.Extract.To = extracttest.Wall("2026-01-02 09:30:00"), extracttest.Wall("2026-01-04 09:00:00")
	w.run(narrow)

	inRange := func(r formservice.Result) bool {
		return pipelinestest.Date(r) >= "2026-01-02 09:30:00" && pipelinestest.Date(r) < "2026-01-04 09:00:00"
	}
	w.checkFile("form1.ndjson", pipelinestest.Truth(form, inRange))
	file := readManifest(t, w.path("form1.ndjson.manifest.json"))
	if v := file.Verified; v.Counted != 3 || v.Extracted != 3 || !v.Match || file.Rows != 3 {
		t.Errorf("the file's: verified %+v, rows %d", v, file.Rows)
	}
	if from := file.Range.From.String() + "/" + file.Range.To.String(); from != "2026-01-02 09:30:00/2026-01-04 09:00:00" {
		t.Errorf("the file's range is %s", from)
	}
	for _, set := range []string{"days", "months"} {
		m := w.checkDataset(set, pipelinestest.Truth(form, func(r formservice.Result) bool { return pipelinestest.Date(r) != "" }))
		if m.Verified.Counted != m.Verified.Extracted || m.Verified.Counted < 8 || m.Range.From.After(extracttest.Wall("2026-01-01")) {
			t.Errorf("%s: verified %+v, range from %s", set, m.Verified, m.Range.From)
		}
	}
}

// TestWatermarkDoesNotRunAheadOfTheClock where a range ends in the future.
func TestWatermarkDoesNotRunAheadOfTheClock(t *testing.T) {
	w := newWorld(t, fourDays())
	run := func(to, now string) string {
		def := w.daily(definition.Output{Path: "days/", Format: "ndjson", Partition: definition.PartitionDay})
		def.Extract.To = extracttest.Wall(to)
		o := options()
		o.Now = zoned(t, w, now)
		w.runBy(def, o)
		return readManifest(t, filepath.Join(w.path("days"), load.ManifestName)).Watermark.String()
	}
	for _, c := range []struct{ to, now, want string }{
		{"2026-01-10", "2026-01-03 12:00:00", "2026-01-03 11:59:00"},
		{"2026-01-10", "2026-01-04 12:00:00", "2026-01-04 11:59:00"},
		{"2026-01-03", "2026-01-05 12:00:00", "2026-01-04 11:59:00"}, // it never falls
		{"2026-01-12", "2026-02-05 12:00:00", "2026-01-12 00:00:00"},
		{"2026-01-11", "2026-01-05 12:00:00", "2026-01-12 00:00:00"},
	} {
		if got := run(c.to, c.now); got != c.want {
			t.Errorf("to %s at %s: watermark %s, want %s", c.to, c.now, got, c.want)
		}
	}
}
