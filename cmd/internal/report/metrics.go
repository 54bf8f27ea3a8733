package report

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/pipelines"
)

// Names of families that code refers to. Some are kept from one run to the next, or decide what is
// kept.
const (
	lastSuccess = "formetl_last_success_timestamp_seconds"
	lastRun     = "formetl_last_run_timestamp_seconds"
	runSuccess  = "formetl_last_run_success"
	watermark   = "formetl_watermark_timestamp_seconds"
)

// family is one metric of the metrics file. All metrics are gauges, because they tell of
// the last run, and a counter must not fall from one run to the next.
type family struct {
	name, help string
	labels     []string
}

// families returns all metrics, in their order in the file.
func families() []family {
	pipeline, form, output := []string{"pipeline"}, []string{"pipeline", "form"}, []string{"pipeline", "form", "output"}
	return []family{
		{"formetl_build_info", "The version of formetl that wrote this file; always 1.", []string{"version"}},
		{"formetl_pipeline_last_run_timestamp_seconds", "When the last run of the pipeline ended.", pipeline},
		{"formetl_pipeline_duration_seconds", "How long the last run of the pipeline took.", pipeline},
		{"formetl_pipeline_exit_code", "Exit code of the last run of the pipeline, 0 if it succeeded.", pipeline},
		{"formetl_requests", "Attempts of requests in the last run, by outcome.", []string{"pipeline", "outcome"}},
		{"formetl_day_budget_used", "Requests counted against the account's daily budget in the 24 hours before the last run ended.", pipeline},
		{"formetl_day_budget", "Requests that the account's budget allows in 24 hours.", pipeline},
		{lastSuccess, "When a run of the form last succeeded; kept while runs fail.", form},
		{lastRun, "When the last run of the form ended.", form},
		{runSuccess, "Whether the last run of the form succeeded.", form},
		{"formetl_unproven", "1 if the last run of the form could not prove that nothing is missing; its report says why.", form},
		{"formetl_run_duration_seconds", "How long the last run of the form took.", form},
		{"formetl_rows", "Results that the last run read and did not reject.", form},
		{"formetl_rejects", "Results that the last run rejected.", form},
		{"formetl_nulled_values", "Values that did not fit their column and became null in the last run.", form},
		{"formetl_windows", "Windows of time in the last run.", form},
		{"formetl_windows_read_again", "Windows that the last run read again because results changed while it was reading.", form},
		{"formetl_older_windows", "Windows of older parts that the last run read again because a result in them changed, or may have changed.", form},
		{"formetl_drift_changes", "Changes of the form that the last run found.", form},
		{"formetl_output_rows", "Rows of the output; of a dataset, of all its parts.", output},
		{"formetl_output_bytes", "Bytes of the output's data objects.", output},
		{watermark, "Up to when the output is complete; kept while runs fail.", output},
	}
}

// sample identifies a sample: the name of its family, and the values of its labels joined by NUL.
type sample struct{ family, labels string }

// sampleOf returns a sample. In labels it replaces bytes that are not UTF-8, and NUL.
func sampleOf(family string, labels ...string) sample {
	for i, v := range labels {
		labels[i] = strings.ReplaceAll(strings.ToValidUTF8(v, "\uFFFD"), "\x00", "\uFFFD")
	}
	return sample{family, strings.Join(labels, "\x00")}
}

// metrics are the samples of a metrics file, with their values.
type metrics map[sample]float64

// newMetrics returns the metrics of runs. Samples of the last success and the watermark are taken
// over from the earlier file where these runs have no newer value, so that an alert can watch their
// age.
func newMetrics(reports []*pipelines.Report, earlier metrics) metrics {
	m := metrics{sampleOf("formetl_build_info", console.Version()): 1}
	for _, r := range reports {
		m.addRun(r)
		if r.Error != "" && len(r.Forms) == 0 {
			m.addNone(r, earlier)
		}
	}
	for s, ok := range maps.Clone(m) {
		if s.family == runSuccess && ok == 1 {
			m[sample{lastSuccess, s.labels}] = m[sample{lastRun, s.labels}]
		}
	}
	for s, at := range earlier {
		// A form that succeeded reports all its outputs. If an output of it is missing, the
		// definition no longer has that output.
		stays := s.family == lastSuccess || s.family == watermark && m[sample{runSuccess, s.labels[:strings.LastIndexByte(s.labels, 0)]}] != 1
		if _, newer := m[s]; stays && !newer {
			m[s] = at
		}
	}
	return m
}

// addRun adds the metrics of a run. Definitions with the same name count as one pipeline.
func (m metrics) addRun(r *pipelines.Report) {
	m[sampleOf("formetl_pipeline_last_run_timestamp_seconds", r.Pipeline)] = unix(r.EndedAt)
	m[sampleOf("formetl_pipeline_duration_seconds", r.Pipeline)] += r.EndedAt.Sub(r.StartedAt).Seconds()
	if code := sampleOf("formetl_pipeline_exit_code", r.Pipeline); m[code] == 0 {
		m[code] = float64(r.ExitCode)
	}
	if b := r.DayBudget; b != nil {
		m[sampleOf("formetl_day_budget_used", r.Pipeline)], m[sampleOf("formetl_day_budget", r.Pipeline)] = float64(b.Used), float64(b.Of)
	}
	for outcome, n := range r.RequestOutcomes {
		m[sampleOf("formetl_requests", r.Pipeline, outcome)] += float64(n)
	}
	for _, f := range r.Forms {
		m.addForm(r, f)
	}
}

// addNone adds a run that failed before it knew its forms. It counts as failed for the forms that
// the earlier file has. If that has no forms, a sample with an empty form counts as failed until a
// run knows its forms.
func (m metrics) addNone(r *pipelines.Report, earlier metrics) {
	none := sampleOf(runSuccess, r.Pipeline, "")
	known := []string{}
	for s := range earlier {
		if s.family == runSuccess && strings.HasPrefix(s.labels, none.labels) {
			known = append(known, s.labels)
		}
	}
	if len(known) == 0 {
		known = append(known, none.labels)
	}
	for _, labels := range known {
		m[sample{runSuccess, labels}], m[sample{lastRun, labels}] = 0, unix(r.EndedAt)
	}
}

// addForm adds what a run did with a form. If a replay runs a form more than once, the
// values of these runs are added up.
func (m metrics) addForm(r *pipelines.Report, f *pipelines.FormReport) {
	success := sampleOf(runSuccess, r.Pipeline, f.Form)
	if before, known := m[success]; f.Error != "" || known && before == 0 {
		m[success] = 0
	} else {
		m[success] = 1
	}
	m[sample{lastRun, success.labels}] = unix(f.EndedAt)
	if v := f.Verified; v != nil {
		m[sample{"formetl_unproven", success.labels}] = map[bool]float64{v.Unproven != "": 1}[true]
	}
	var nulled int64
	for _, n := range f.Nulled {
		nulled += n.Count
	}
	for family, value := range map[string]float64{
		"formetl_run_duration_seconds": f.EndedAt.Sub(f.StartedAt).Seconds(),
		"formetl_rows":                 float64(f.Rows),
		"formetl_rejects":              float64(f.Rejected),
		"formetl_nulled_values":        float64(nulled),
		"formetl_windows":              float64(f.Windows),
		"formetl_windows_read_again":   float64(f.Reread),
		"formetl_older_windows":        float64(f.Older),
		"formetl_drift_changes":        float64(len(f.Changes)),
	} {
		m[sample{family, success.labels}] += value
	}
	for _, out := range f.Outputs {
		if out.Error != "" {
			continue
		}
		// A path that differs from run to run would begin a new time series with each run.
		path := regexp.MustCompile(`\d{8}T\d{6}Z-[0-9a-f]{8}`).ReplaceAllString(out.Path, "{run_id}")
		m[sampleOf("formetl_output_rows", r.Pipeline, f.Form, path)] = float64(out.Rows)
		m[sampleOf("formetl_output_bytes", r.Pipeline, f.Form, path)] = float64(out.Bytes)
		if zone, err := time.LoadLocation(f.Timezone); err == nil && !out.Watermark.IsZero() {
			m[sampleOf(watermark, r.Pipeline, f.Form, path)] = unix(console.FirstInstant(out.Watermark, zone))
		}
	}
}

// unix returns an instant in Prometheus's unit: seconds of Unix time, with milliseconds.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// gauges returns the metrics in the types of Prometheus's library, in the order of
// families.
func (m metrics) gauges() []*dto.MetricFamily {
	var gauges []*dto.MetricFamily
	for _, f := range families() {
		var keys []string
		for s := range m {
			if s.family == f.name {
				keys = append(keys, s.labels)
			}
		}
		if len(keys) == 0 {
			continue
		}
		slices.Sort(keys)
		g := &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: dto.MetricType_GAUGE.Enum()}
		for _, key := range keys {
			value, labels := m[sample{f.name, key}], []*dto.LabelPair{}
			for i, v := range strings.Split(key, "\x00") {
				labels = append(labels, &dto.LabelPair{Name: &f.labels[i], Value: &v})
			}
			g.Metric = append(g.Metric, &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &value}})
		}
		gauges = append(gauges, g)
	}
	return gauges
}

// metricsIn returns the samples of a file that belong to a known family and have exactly
// the labels of the family. Other samples were not written by formetl.
func metricsIn(found map[string]*dto.MetricFamily) metrics {
	m := metrics{}
	for _, f := range families() {
		for _, metric := range found[f.name].GetMetric() {
			values := make([]string, len(f.labels))
			known := len(metric.GetLabel()) == len(f.labels) && metric.GetGauge() != nil
			for _, l := range metric.GetLabel() {
				i := slices.Index(f.labels, l.GetName())
				if known = known && i >= 0; known {
					values[i] = l.GetValue()
				}
			}
			if v := metric.GetGauge().GetValue(); known && !math.IsNaN(v) && !math.IsInf(v, 0) {
				m[sampleOf(f.name, values...)] = v
			}
		}
	}
	return m
}

// metricsMode lets all users of the machine read a new metrics file, because node_exporter
// has a user of its own. The mode of an existing file stays.
const metricsMode = 0o644

// WriteMetrics writes the file of --metrics for node_exporter's textfile collector. It replaces the
// file by a rename, because the collector may read it at any time. If an earlier file cannot be
// read, log gets a warning.
func WriteMetrics(ctx context.Context, file string, reports []*pipelines.Report, log *slog.Logger) error {
	if err := CheckFile("metrics", file); file == "" || err != nil { // a device is never replaced
		return err
	}
	earlier, err := readMetrics(file)
	if err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "the metrics file of earlier runs cannot be read, so it is replaced; until each form succeeds again, the times of its last success are missing",
			slog.String("path", file), slog.String("error", err.Error()))
	}
	var b bytes.Buffer
	for _, f := range newMetrics(reports, earlier).gauges() {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return err
		}
	}
	if err := replace(file, b.Bytes()); err != nil {
		return unwritable("metrics", file, err)
	}
	return nil
}

// readMetrics reads the metrics file of an earlier run. Without a file it returns no metrics.
func readMetrics(file string) (metrics, error) {
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !utf8.Valid(data):
		return nil, errors.New("the file is not text")
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return metricsIn(found), nil
}
