package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// checkReport makes sure that a report can be written, before any work is
// done whose report would be lost.
func checkReport(file string) error {
	if file == "" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return reportError(file, errors.New("it is a folder"))
	}
	probe, err := os.CreateTemp(filepath.Dir(file), ".formetl-report-*")
	if err != nil {
		return reportError(file, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func reportError(file string, err error) error {
	if p := new(os.PathError); errors.As(err, &p) {
		err = p.Err // the path of the probe would only confuse
	}
	return &load.CreateError{Op: "write the report", Path: file, Hint: "give --report a file in a folder that is there and can be written to", Err: err}
}

// writeReports writes the report, or a list of them for several definitions.
func writeReports(file string, reports []*pipelines.Report) error {
	if file == "" {
		return nil
	}
	var v any = reports
	if len(reports) == 1 {
		v = reports[0]
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(file, append(data, '\n'), 0o640); err != nil {
		return reportError(file, err)
	}
	return nil
}

func asForms(err error) (*pipelines.FormsError, bool) {
	return errors.AsType[*pipelines.FormsError](err)
}
