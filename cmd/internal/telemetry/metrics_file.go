package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/google/renameio/v2"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/formetl/formetl/pipelines"
)

// metricsMode lets everybody on the machine read the file, because node_exporter
// runs as a user of its own. A mode that somebody gave the file stays.
const metricsMode = 0o644

// WriteMetrics writes the file of --metrics for node_exporter's textfile
// collector. It replaces the file by a rename, because the collector may read at
// any time. An earlier file that cannot be read is a warning in log.
func WriteMetrics(ctx context.Context, file string, reports []*pipelines.Report, log *slog.Logger) error {
	if file == "" {
		return nil
	}
	earlier, err := readMetrics(file)
	if err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "the earlier metrics file cannot be read and is replaced; times of the last success begin anew",
			slog.String("path", file), slog.String("error", err.Error()))
	}
	var b bytes.Buffer
	for _, f := range newMetrics(reports, earlier).gauges() {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return err
		}
	}
	if err := renameio.WriteFile(file, b.Bytes(), metricsMode, renameio.IgnoreUmask()); err != nil {
		return MetricsFile(file).unwritable(err)
	}
	return nil
}

// readMetrics reads the file of an earlier run; no file is no metrics.
func readMetrics(file string) (metrics, error) {
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !utf8.Valid(data):
		return nil, errors.New("it is not text")
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	return metricsIn(found), nil
}
