package console

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// CheckFile makes sure that the file of a flag, report or metrics, can be
// written, before any work is done that it would tell of.
func CheckFile(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return unwritable(flag, path, errors.New("it is a folder"))
	}
	if e, ok := errors.AsType[*load.CreateError](CheckOrdinary(path)); ok {
		return unwritable(flag, path, e.Err)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".formetl-"+flag+"-*")
	if err != nil {
		return unwritable(flag, path, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// CheckOrdinary returns a *load.CreateError if a device, a pipe, a socket or a link lies at a
// local path, or has the place of a file. No force makes formetl write there.
func CheckOrdinary(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // nothing is there; or it cannot be written to either
	}
	return load.NotOrdinary(path, info, func() (string, error) { return os.Readlink(path) })
}

// NoteMetrics warns of a metrics file that node_exporter's textfile collector does not read.
func NoteMetrics(ctx context.Context, log *slog.Logger, file string) {
	if file != "" && filepath.Ext(file) != ".prom" {
		log.LogAttrs(ctx, slog.LevelWarn, "node_exporter's textfile collector reads only files whose names end with .prom", slog.String("path", file))
	}
}

// unwritable is the error of a flag's file that cannot be written.
func unwritable(flag, path string, err error) error {
	if p := new(os.PathError); errors.As(err, &p) {
		err = p.Err // the path of the probe would only confuse
	}
	return &load.CreateError{Op: "write the " + flag, Path: path, Hint: "give --" + flag + " a file in a folder that is there and can be written to", Err: err}
}

// IsPage tells whether the file of --report is a page, by its name.
func IsPage(file string) bool { return strings.EqualFold(filepath.Ext(file), ".html") }

// WriteReports writes the report of --report, or a list where a command made none or
// several. It is JSON, or what page makes of the reports if the file is a page.
func WriteReports(file string, reports []*pipelines.Report, page func([]*pipelines.Report) ([]byte, error)) error {
	if err := CheckFile("report", file); file == "" || err != nil { // a device is never replaced
		return err
	}
	host, _ := os.Hostname() // "" where the system does not tell
	for _, r := range reports {
		if r.Version, r.Host = Version(), host; r.Forms == nil {
			r.Forms = []*pipelines.FormReport{} // [] and not null
		}
	}
	encode := encodeReports
	if IsPage(file) {
		encode = page
	}
	data, err := encode(reports)
	if err != nil {
		return err
	}
	if err := maybe.WriteFile(file, data, 0o640); err != nil {
		return unwritable("report", file, err)
	}
	return nil
}

func encodeReports(reports []*pipelines.Report) ([]byte, error) {
	v := any(append([]*pipelines.Report{}, reports...)) // none is [] and not null
	if len(reports) == 1 {
		v = reports[0]
	}
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// SetExitCodes fills in the exit codes of a run that ended with err and of each
// of its forms, and what to do next.
func SetExitCodes(r *pipelines.Report, err error) {
	command, whom := "formetl run", "for the next run"
	if r.Definition == "" {
		command, whom = "formetl export", "for an hour"
	}
	if err != nil {
		r.ExitCode, r.Error, r.Hint = ExitCode(err), err.Error(), Hint(err, command, Kept(whom, r))
	}
	for _, f := range r.Forms {
		f.ExitCode = ExitCode(f.Err)
	}
}

// Kept says how much of what failed runs had read is kept, and for whom, such as
// "for the next run". It is "" where they had read nothing.
func Kept(whom string, reports ...*pipelines.Report) string {
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
		return "no result is kept"
	}
	return "kept " + whom + ": " + Plural(kept, "result")
}
