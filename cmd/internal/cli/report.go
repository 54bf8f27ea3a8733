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

// sideFile is a file that a command writes besides its outputs.
type sideFile struct{ what, flag, path string }

func reportPlace(path string) sideFile { return sideFile{"report", "--report", path} }

func metricsPlace(path string) sideFile { return sideFile{"metrics", "--metrics", path} }

// check makes sure that the file can be written, before any work is done that
// it would not tell of.
func (s sideFile) check() error {
	if s.path == "" {
		return nil
	}
	if info, err := os.Stat(s.path); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return s.wrong(errors.New("it is a folder"))
		}
		return s.wrong(errors.New("it is no ordinary file, and would be replaced by one"))
	}
	probe, err := os.CreateTemp(filepath.Dir(s.path), ".formetl-"+s.what+"-*")
	if err != nil {
		return s.wrong(err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// wrong is the error of a file that cannot be written.
func (s sideFile) wrong(err error) error {
	if p := new(os.PathError); errors.As(err, &p) {
		err = p.Err // the path of the probe would only confuse
	}
	return &load.CreateError{Op: "write the " + s.what, Path: s.path, Hint: "give " + s.flag + " a file in a folder that is there and can be written to", Err: err}
}

// writeReports writes the report, or a list of them where there is not one.
func writeReports(file string, reports []*pipelines.Report) error {
	if file == "" {
		return nil
	}
	v := any(append([]*pipelines.Report{}, reports...)) // none is [] and not null
	if len(reports) == 1 {
		v = reports[0]
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(file, append(data, '\n'), 0o640); err != nil {
		return reportPlace(file).wrong(err)
	}
	return nil
}

// keptOf says what is kept of what runs that failed had read, and for whom, ""
// where they had read nothing.
func keptOf(whom string, reports ...*pipelines.Report) string {
	var kept int64
	read := false
	for _, r := range reports {
		for _, f := range r.Forms {
			if f.ResultsKept != nil {
				read, kept = true, kept+*f.ResultsKept
			}
		}
	}
	switch {
	case !read:
		return ""
	case kept == 0:
		return "nothing of what was read is kept"
	}
	return "kept " + whom + ": " + plural(int(kept), "result") + " of windows that were read whole"
}

// judgeReport fills in what the exit code of a run and of each form is.
func judgeReport(r *pipelines.Report, err error) {
	if err != nil {
		r.ExitCode, r.Error = exitCode(err), err.Error()
	}
	for _, f := range r.Forms {
		f.ExitCode = exitCode(f.Err)
	}
}
