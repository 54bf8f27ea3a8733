package telemetry

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/pipelines"
)

// Families that are kept from run to run, or that decide what is kept.
const (
	lastSuccess = "formetl_last_success_timestamp_seconds"
	lastRun     = "formetl_last_run_timestamp_seconds"
	runSuccess  = "formetl_last_run_success"
	watermark   = "formetl_watermark_timestamp_seconds"
)

// family is a metric of the file. All metrics are gauges, because they tell of
// the last run, and a counter may not fall from one run to the next.
type family struct {
	name, help string
	labels     []string
}

// families are all metrics, in the order of the file.
func families() []family {
	pipeline, form, output := []string{"pipeline"}, []string{"pipeline", "form"}, []string{"pipeline", "form", "output"}
	return []family{
		{"formetl_build_info", "The version of formetl that wrote this file; always 1.", []string{"version"}},
		{"formetl_pipeline_last_run_timestamp_seconds", "When the last run of the pipeline ended.", pipeline},
		{"formetl_pipeline_duration_seconds", "How long the last run of the pipeline took.", pipeline},
		{"formetl_pipeline_exit_code", "Exit code of the last run of the pipeline, 0 if all of it was done.", pipeline},
		{"formetl_requests", "Attempts of requests in the last run, by what became of them.", []string{"pipeline", "outcome"}},
		{lastSuccess, "When the form was last read and written as a whole; kept while runs fail.", form},
		{lastRun, "When the last run of the form ended.", form},
		{runSuccess, "Whether the last run of the form read and wrote it as a whole.", form},
		{"formetl_run_duration_seconds", "How long the last run of the form took.", form},
		{"formetl_rows", "Results that the last run read and did not reject.", form},
		{"formetl_rejects", "Results that the last run rejected.", form},
		{"formetl_nulled_values", "Values that did not fit their column and became null in the last run.", form},
		{"formetl_windows", "Windows of time in the last run.", form},
		{"formetl_windows_read_again", "Windows that the last run read again because results had changed or moved.", form},
		{"formetl_older_windows", "Windows of older parts that the last run read again because a result of theirs had moved.", form},
		{"formetl_drift_changes", "Changes of the form that the last run noted.", form},
		{"formetl_output_rows", "Rows of the output, of a dataset those of all its parts.", output},
		{"formetl_output_bytes", "Bytes of the output's data objects.", output},
		{watermark, "Up to when the output is complete; kept while runs fail.", output},
	}
}

// metrics are the samples of a file, by family and by the joined values of the
// labels, so that no sample can be in it twice.
type metrics map[string]map[string]float64

// series joins the values of labels by NUL. Bytes that are not UTF-8 are
// replaced, because the format cannot hold them.
func series(values ...string) string {
	for i, v := range values {
		values[i] = strings.ReplaceAll(strings.ToValidUTF8(v, "\uFFFD"), "\x00", "\uFFFD")
	}
	return strings.Join(values, "\x00")
}

func (m metrics) set(name string, value float64, labels ...string) {
	if m[name] == nil {
		m[name] = map[string]float64{}
	}
	m[name][series(labels...)] = value
}

func (m metrics) get(name string, labels ...string) (float64, bool) {
	v, ok := m[name][series(labels...)]
	return v, ok
}

func (m metrics) add(name string, value float64, labels ...string) {
	sum, _ := m.get(name, labels...)
	m.set(name, sum+value, labels...)
}

// newMetrics are the metrics of runs. The last success and the watermark of an
// earlier file stay where these runs have nothing newer, so that an alert can
// watch their age.
func newMetrics(reports []*pipelines.Report, earlier metrics) metrics {
	m := metrics{}
	m.set("formetl_build_info", 1, Version())
	for _, r := range reports {
		m.addRun(r)
		if r.Error != "" && len(r.Forms) == 0 {
			m.addNone(r, earlier)
		}
	}
	for form, ok := range m[runSuccess] {
		if ok == 1 {
			m.keep(lastSuccess, form, m[lastRun][form])
		}
	}
	for form, at := range earlier[lastSuccess] {
		if _, newer := m[lastSuccess][form]; !newer {
			m.keep(lastSuccess, form, at)
		}
	}
	for output, at := range earlier[watermark] {
		_, newer := m[watermark][output]
		form := output[:strings.LastIndexByte(output, 0)]
		// A form that succeeded reports all its outputs: one that is missing
		// was taken out of the definition.
		if !newer && m[runSuccess][form] != 1 {
			m.keep(watermark, output, at)
		}
	}
	return m
}

// keep sets a sample by the joined values of its labels.
func (m metrics) keep(name, key string, value float64) {
	m.set(name, value, strings.Split(key, "\x00")...)
}

// addRun adds a run. Definitions of the same name count as one pipeline.
func (m metrics) addRun(r *pipelines.Report) {
	m.set("formetl_pipeline_last_run_timestamp_seconds", unix(r.EndedAt), r.Pipeline)
	m.add("formetl_pipeline_duration_seconds", r.EndedAt.Sub(r.StartedAt).Seconds(), r.Pipeline)
	if code, _ := m.get("formetl_pipeline_exit_code", r.Pipeline); code == 0 {
		m.set("formetl_pipeline_exit_code", float64(r.ExitCode), r.Pipeline)
	}
	for outcome, n := range r.RequestOutcomes {
		m.add("formetl_requests", float64(n), r.Pipeline, outcome)
	}
	for _, f := range r.Forms {
		m.addForm(r, f)
	}
}

// addNone adds a run that failed before it knew its forms. It counts as failed
// for the forms of the earlier file. Where that knows none, a series with an
// empty form says so until a run knows its forms.
func (m metrics) addNone(r *pipelines.Report, earlier metrics) {
	known := map[string]bool{}
	for key := range earlier[runSuccess] {
		if pipeline, form, _ := strings.Cut(key, "\x00"); pipeline == series(r.Pipeline) {
			known[form] = true
		}
	}
	if len(known) == 0 {
		known[""] = true
	}
	for form := range known {
		m.set(runSuccess, 0, r.Pipeline, form)
		m.set(lastRun, unix(r.EndedAt), r.Pipeline, form)
	}
}

// addForm adds what a run did with a form. A resumed run reports a form more than
// once, and then the entries count together.
func (m metrics) addForm(r *pipelines.Report, f *pipelines.FormReport) {
	m.set(lastRun, unix(f.EndedAt), r.Pipeline, f.Form)
	ok := 1.0
	if before, known := m.get(runSuccess, r.Pipeline, f.Form); f.Error != "" || known && before == 0 {
		ok = 0
	}
	m.set(runSuccess, ok, r.Pipeline, f.Form)
	var nulled int64
	for _, n := range f.Nulled {
		nulled += n.Count
	}
	for name, value := range map[string]float64{
		"formetl_run_duration_seconds": f.EndedAt.Sub(f.StartedAt).Seconds(),
		"formetl_rows":                 float64(f.Rows),
		"formetl_rejects":              float64(f.Rejected),
		"formetl_nulled_values":        float64(nulled),
		"formetl_windows":              float64(f.Windows),
		"formetl_windows_read_again":   float64(f.Reread),
		"formetl_older_windows":        float64(f.Older),
		"formetl_drift_changes":        float64(len(f.Changes)),
	} {
		m.add(name, value, r.Pipeline, f.Form)
	}
	for _, out := range f.Outputs {
		if out.Error == "" {
			m.addOutput(r, f, out)
		}
	}
}

// addOutput adds what a run wrote to an output.
func (m metrics) addOutput(r *pipelines.Report, f *pipelines.FormReport, out pipelines.OutputReport) {
	// A path that differs from run to run would begin a new series each time.
	path := regexp.MustCompile(`\d{8}T\d{6}Z-[0-9a-f]{8}`).ReplaceAllString(out.Path, "{run_id}")
	m.set("formetl_output_rows", float64(out.Rows), r.Pipeline, f.Form, path)
	m.set("formetl_output_bytes", float64(out.Bytes), r.Pipeline, f.Form, path)
	zone, err := time.LoadLocation(f.Timezone)
	if out.Watermark.IsZero() || err != nil { // the zone's name comes from a zone
		return
	}
	m.set(watermark, unix(show.FirstInstant(out.Watermark, zone)), r.Pipeline, f.Form, path)
}

// unix is an instant as Prometheus writes it: seconds, to the millisecond.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// gauges are the metrics as the library of the format takes them, in the order of
// families.
func (m metrics) gauges() []*dto.MetricFamily {
	var list []*dto.MetricFamily
	for _, f := range families() {
		samples := m[f.name]
		if len(samples) == 0 {
			continue
		}
		g := &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: dto.MetricType_GAUGE.Enum()}
		for _, key := range slices.Sorted(maps.Keys(samples)) {
			value, labels := samples[key], []*dto.LabelPair{}
			for i, v := range strings.Split(key, "\x00") {
				labels = append(labels, &dto.LabelPair{Name: &f.labels[i], Value: &v})
			}
			g.Metric = append(g.Metric, &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &value}})
		}
		list = append(list, g)
	}
	return list
}

// metricsIn are the samples of a file that belong to a known family and have
// exactly its labels. Anything else was not written by formetl.
func metricsIn(found map[string]*dto.MetricFamily) metrics {
	m := metrics{}
	for _, f := range families() {
		for _, sample := range found[f.name].GetMetric() {
			values := make([]string, len(f.labels))
			known := len(sample.GetLabel()) == len(f.labels) && sample.GetGauge() != nil
			for _, l := range sample.GetLabel() {
				i := slices.Index(f.labels, l.GetName())
				if known = known && i >= 0; known {
					values[i] = l.GetValue()
				}
			}
			if v := sample.GetGauge().GetValue(); known && !math.IsNaN(v) && !math.IsInf(v, 0) {
				m.set(f.name, v, values...)
			}
		}
	}
	return m
}
