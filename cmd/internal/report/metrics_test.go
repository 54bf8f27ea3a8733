package report

import (
	"bytes"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/output"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/schemas"

	"github.com/formetl/formetl/load/loadtest/needs"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// text is the file of metrics.
func (m metrics) text(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range m.gauges() {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// writeFile writes a metrics file.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.prom")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// of are the samples of a family by the joined values of their labels.
func (m metrics) of(family string) map[string]float64 {
	samples := map[string]float64{}
	for s, v := range m {
		if s.family == family {
			samples[s.labels] = v
		}
	}
	return samples
}

// series joins the values of labels as samples do.
func series(labels ...string) string { return sampleOf("", labels...).labels }

const atNoon = 1772366400 // 2026-03-01 12:00:00 UTC

// noon is a run that ended so many seconds after the noon above and took ten.
func noon(after int, forms ...*pipelines.FormReport) *pipelines.Report {
	end := time.Unix(int64(atNoon+after), 0)
	for _, f := range forms {
		f.StartedAt, f.EndedAt = end.Add(-10*time.Second), end
	}
	return &pipelines.Report{
		Pipeline: "p", RunID: "20260301T120000Z-00000000", StartedAt: end.Add(-10 * time.Second), EndedAt: end,
		RequestOutcomes: map[string]int64{"ok": 7, "busy": 1}, Forms: forms,
	}
}

func formOf(name, failure string, marks ...string) *pipelines.FormReport {
	f := &pipelines.FormReport{
		Form: name, Timezone: "America/Chicago", Error: failure,
		Windows: 4, Rows: 5, Rejected: 2, Nulled: []reading.FaultCount{{Count: 2}, {Count: 4}},
		Reread: 1, Older: 3,
		Changes: make([]schemas.Change, 3),
	}
	for i, mark := range marks {
		at, _ := definition.ParseWallTime(mark)
		f.Outputs = append(f.Outputs, output.Report{
			Path: "/lake/20260301T120000Z-0123abcd/" + string(rune('a'+i)) + "/", Rows: 50, Bytes: 1234, Watermark: load.Wall(at),
		})
	}
	return f
}

// failedBefore is a run that failed; before its first form if the report has none.
func failedBefore(r *pipelines.Report) *pipelines.Report {
	r.ExitCode, r.Error = console.ExitTemporary, "Get Forms failed"
	return r
}

// TestMetricsOfNoForm holds that a run which fails before its first form says
// so, also where no run before it knew a form.
func TestMetricsOfNoForm(t *testing.T) {
	other := noon(0, formOf("f", ""))
	other.Pipeline = "q" // is not touched by what fails of p
	first := newMetrics([]*pipelines.Report{failedBefore(noon(0)), other}, nil)
	checkMetrics(t, first.text(t))
	again := newMetrics([]*pipelines.Report{failedBefore(noon(60))}, first)
	delete(first, sampleOf(runSuccess, "q", "f"))
	for _, m := range []metrics{first, again} {
		if got, want := m.of(runSuccess), (map[string]float64{series("p", ""): 0}); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	done := newMetrics([]*pipelines.Report{noon(120, formOf("f", ""))}, again)
	if got, want := done.of(runSuccess), (map[string]float64{series("p", "f"): 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("after a run that was done: got %v, want %v", got, want)
	}
}

// TestMetricsFile shows the whole file of a run with a form that was done and
// one that failed.
func TestMetricsFile(t *testing.T) {
	failed := noon(0, formOf("good", "", "2026-03-01 05:59:00"), formOf("bad", "no such form"))
	failed.Forms[0].ResultChanges = &pipelines.ChangesReport{Method: load.MethodChanges, StaleParts: 50}
	failed.Forms[0].Verified, failed.Forms[1].Verified = &load.Verified{Unproven: "no counts"}, &load.Verified{Match: true}
	failed.Forms[0].Outputs = append(failed.Forms[0].Outputs, output.Report{Path: "/full/", Rows: 9, Error: "the disk is full"})
	failed.ExitCode, failed.DayBudget = 66, &pipelines.DayBudget{Used: 11, Of: 500}
	second := noon(30, formOf("late", "")) // of another definition with the same name
	second.EndedAt = second.EndedAt.Add(250 * time.Millisecond)
	m := newMetrics([]*pipelines.Report{failed, second}, nil)
	got := string(m.text(t))
	checkMetrics(t, []byte(got))
	want, err := os.ReadFile("testdata/metrics.prom")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		want = []byte(strings.ReplaceAll(got, console.Version(), "VERSION"))
		if err := os.WriteFile("testdata/metrics.prom", want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text := strings.ReplaceAll(string(want), "VERSION", console.Version()); got != text {
		t.Errorf("got\n%swant\n%s", got, text)
	}
}

// TestMetricsAcrossRuns holds what is kept of an earlier file and what is not.
func TestMetricsAcrossRuns(t *testing.T) {
	const mark = "2026-03-01 05:00:00" // 11:00 UTC
	outputA, outputB := "/lake/{run_id}/a/", "/lake/{run_id}/b/"
	first := []*pipelines.Report{noon(0, formOf("f", "", mark, mark), formOf("g", ""))}
	for _, c := range []struct {
		name string
		then []*pipelines.Report
		want map[string]map[string]float64 // by family and label values
	}{
		{"a run that fails keeps success and watermark", []*pipelines.Report{failedBefore(noon(60, formOf("f", "busy")))}, map[string]map[string]float64{
			lastSuccess: {series("p", "f"): atNoon, series("p", "g"): atNoon},
			runSuccess:  {series("p", "f"): 0},
			lastRun:     {series("p", "f"): atNoon + 60},
			watermark:   {series("p", "f", outputA): atNoon - 3600, series("p", "f", outputB): atNoon - 3600},
		}},
		{"one of two outputs committed", []*pipelines.Report{noon(60, formOf("f", "b failed", "2026-03-01 05:30:00"))}, map[string]map[string]float64{
			lastSuccess: {series("p", "f"): atNoon, series("p", "g"): atNoon},
			watermark:   {series("p", "f", outputA): atNoon - 1800, series("p", "f", outputB): atNoon - 3600},
		}},
		{"an output that is no longer one goes with a success", []*pipelines.Report{noon(60, formOf("f", "", "2026-03-01 06:00:00"))}, map[string]map[string]float64{
			lastSuccess: {series("p", "f"): atNoon + 60, series("p", "g"): atNoon},
			watermark:   {series("p", "f", outputA): atNoon},
		}},
		{"a run of another form alone", []*pipelines.Report{noon(60, formOf("g", ""))}, map[string]map[string]float64{
			lastSuccess: {series("p", "f"): atNoon, series("p", "g"): atNoon + 60},
			runSuccess:  {series("p", "g"): 1},
			watermark:   {series("p", "f", outputA): atNoon - 3600, series("p", "f", outputB): atNoon - 3600},
		}},
		{"the forms could not be listed", []*pipelines.Report{failedBefore(noon(60))}, map[string]map[string]float64{
			lastSuccess: {series("p", "f"): atNoon, series("p", "g"): atNoon},
			runSuccess:  {series("p", "f"): 0, series("p", "g"): 0},
			lastRun:     {series("p", "f"): atNoon + 60, series("p", "g"): atNoon + 60},
			watermark:   {series("p", "f", outputA): atNoon - 3600, series("p", "f", outputB): atNoon - 3600},
		}},
		{"two runs of a form count together", []*pipelines.Report{noon(60, formOf("f", "", mark), formOf("f", "", "2026-03-01 06:00:00"))}, map[string]map[string]float64{
			"formetl_rows": {series("p", "f"): 10}, "formetl_run_duration_seconds": {series("p", "f"): 20},
			"formetl_output_rows": {series("p", "f", outputA): 50},
			watermark:             {series("p", "f", outputA): atNoon},
			runSuccess:            {series("p", "f"): 1},
		}},
		{"and fail where one of them does", []*pipelines.Report{noon(60, formOf("f", "no"), formOf("f", ""))}, map[string]map[string]float64{
			runSuccess: {series("p", "f"): 0}, lastSuccess: {series("p", "f"): atNoon, series("p", "g"): atNoon},
		}},
		{"two definitions of one name", []*pipelines.Report{noon(60, formOf("f", "")), noon(90, formOf("g", ""))}, map[string]map[string]float64{
			"formetl_requests": {series("p", "busy"): 2, series("p", "ok"): 14},
			"formetl_pipeline_last_run_timestamp_seconds": {series("p"): atNoon + 90},
			lastSuccess: {series("p", "f"): atNoon + 60, series("p", "g"): atNoon + 90},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "m.prom")
			for _, reports := range [][]*pipelines.Report{first, c.then} {
				if err := WriteMetrics(t.Context(), file, reports, slog.New(slog.DiscardHandler)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readMetrics(file)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range c.want {
				if !reflect.DeepEqual(got.of(name), want) {
					t.Errorf("%s: got %v, want %v", name, got.of(name), want)
				}
			}
		})
	}
}

// TestMetricsLabels holds that what people and services call things comes back
// as it was, and makes no file that Prometheus refuses.
func TestMetricsLabels(t *testing.T) {
	m := metrics{}
	for i, name := range []string{`quote " and \ backslash`, "two\nlines", "山 é", "", "a{b=\"c\"} 1", "# HELP x", "tab\t\r\x1b[31m", "\\n"} {
		m[sampleOf("formetl_rows", "p", name)] = float64(i)
	}
	m[sampleOf("formetl_rows", "p", "bad \xff byte\x00")] = 99
	file := writeFile(t, string(m.text(t)))
	checkMetrics(t, m.text(t))
	got, err := readMetrics(file)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%v; got %v, want %v", err, got, m)
	}
	if v := got[sample{"formetl_rows", "p\x00bad \uFFFD byte\uFFFD"}]; v != 99 {
		t.Errorf("bytes that are no text: %v", got)
	}
}

// TestEarlierMetrics holds that a file that is broken, or not ours, costs its
// values and a warning, and never the run.
func TestEarlierMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		warned bool
		kept   float64
	}{
		"none":           {"", false, 0},
		"ours":           {lastSuccess + "{pipeline=\"p\",form=\"f\"} 1.5e9\n", false, 0}, // untyped
		"ours, typed":    {"# TYPE " + lastSuccess + " gauge\n" + lastSuccess + "{form=\"f\",pipeline=\"p\"} 1.5e9\n", false, 1.5e9},
		"cut off":        {"# TYPE " + lastSuccess + " gauge\n" + lastSuccess + "{pipeline=\"p\",form=\"f", true, 0},
		"not text":       {"\xff\xfe\x00", true, 0},
		"another's":      {"# TYPE up gauge\nup 1\n", false, 0},
		"other labels":   {"# TYPE " + lastSuccess + " gauge\n" + lastSuccess + "{pipeline=\"p\",job=\"f\"} 1.5e9\n", false, 0},
		"no number":      {"# TYPE " + lastSuccess + " gauge\n" + lastSuccess + "{pipeline=\"p\",form=\"f\"} NaN\n", false, 0},
		"too few labels": {"# TYPE " + lastSuccess + " gauge\n" + lastSuccess + "{pipeline=\"p\"} 1.5e9\n", false, 0},
		"two lines":      {"# TYPE " + lastSuccess + " gauge\n# TYPE " + lastSuccess + " gauge\n", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, c.text)
			var log bytes.Buffer
			err := WriteMetrics(t.Context(), file, []*pipelines.Report{noon(0, formOf("f", "busy"))}, slog.New(slog.NewJSONHandler(&log, nil)))
			if err != nil || strings.Contains(log.String(), "is replaced") != c.warned || strings.Contains(log.String(), `"level":"WARN"`) != c.warned {
				t.Errorf("%v; log %s", err, log.String())
			}
			got, err := readMetrics(file)
			if v := got[sampleOf(lastSuccess, "p", "f")]; err != nil || v != c.kept {
				t.Errorf("%v; kept %v, want %v", err, v, c.kept)
			}
		})
	}
}

// TestMetricsMode holds that node_exporter can read the file whatever the
// umask of the job is, and that a mode that somebody chose stays.
func TestMetricsMode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.prom")
	defer syscall.Umask(syscall.Umask(0o077)) // the test runs alone
	for _, want := range []os.FileMode{0o644, 0o604} {
		if want != metricsMode {
			if err := os.Chmod(file, want); err != nil {
				t.Fatal(err)
			}
		}
		if err := WriteMetrics(t.Context(), file, nil, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != want {
			t.Errorf("%v: mode %v, want %v", err, info.Mode(), want)
		}
	}
}

// FuzzReadMetrics reads metrics files that anybody may have written: what is
// taken is of metrics that this program writes, and nothing panics.
func FuzzReadMetrics(f *testing.F) {
	f.Add("# TYPE formetl_rows gauge\nformetl_rows{pipeline=\"p\",form=\"f\"} 3\n")
	f.Add("formetl_rows{pipeline=\"p\"} NaN\nformetl_build_info{version=\"1\"} 1\n")
	f.Add("formetl_rows{")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "x.prom")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := readMetrics(file)
		if err != nil {
			return
		}
		for s := range first {
			if !slices.ContainsFunc(families(), func(g family) bool { return g.name == s.family }) {
				t.Errorf("%s is none of ours", s.family)
			}
		}
	})
}

// TestMetricsAreDocumented holds the metrics to the table of the documentation.
func TestMetricsAreDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../../pipelines/reports.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for line := range strings.Lines(string(docs)) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok && strings.HasPrefix(line, "|") {
			for _, name := range regexp.MustCompile("`(formetl_[a-z_]+)`").FindAllStringSubmatch(first, -1) {
				names[name[1]]++
			}
		}
	}
	for _, f := range families() {
		if names[f.name] != 1 {
			t.Errorf("the documentation's table has the metric %s %d times", f.name, names[f.name])
		}
		delete(names, f.name)
	}
	if len(names) > 0 {
		t.Errorf("the documentation has metrics that are not there: %v", names)
	}
}

// checkMetrics lets Prometheus' own tool judge a file: it may neither refuse it
// nor warn of anything. Where it is not installed, only that is left out.
func checkMetrics(t *testing.T, data []byte) {
	t.Helper()
	t.Run("promtool", func(t *testing.T) {
		tool := needs.Program(t, "promtool", "apt-get install prometheus")
		cmd := exec.CommandContext(t.Context(), tool, "check", "metrics")
		cmd.Stdin = bytes.NewReader(data)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v\n%s\nof\n%s", err, out, data)
		}
	})
}

func TestNoteMetrics(t *testing.T) {
	for file, warns := range map[string]bool{"": false, "/x/formetl.prom": false, "x.txt": true} {
		var out bytes.Buffer
		NoteMetrics(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), file)
		if strings.Contains(out.String(), ".prom") != warns {
			t.Errorf("%q: %s", file, &out)
		}
	}
}
