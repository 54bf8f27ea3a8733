package cli

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

// metricsMode lets everybody on the machine read the file: node_exporter runs
// as a user of its own. A mode that the file was given stays.
const metricsMode = 0o644

// writeMetrics writes what runs did for node_exporter's textfile collector, by
// a rename: it may read at any time.
func writeMetrics(ctx context.Context, file string, reports []*pipelines.Report, log *slog.Logger) error {
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
		return metricsPlace(file).wrong(err)
	}
	return nil
}

// readMetrics reads what an earlier run wrote, nothing where there is no file.
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
