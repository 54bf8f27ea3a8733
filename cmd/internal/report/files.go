package report

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2/maybe"

	"github.com/formetl/formetl/cmd/internal/console"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
)

// CheckFile returns an error if the file of a flag, --report or --metrics, cannot be
// written. It is called before the work of which the file will tell.
func CheckFile(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return unwritable(flag, path, errors.New("this is a folder"))
	}
	if e, ok := errors.AsType[*load.Error](console.CheckOrdinary(path)); ok {
		return unwritable(flag, path, e.Err)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".formetl-"+flag+"-*")
	if err != nil {
		return unwritable(flag, path, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// NoteMetrics warns of a metrics file whose name node_exporter's textfile collector does not read.
func NoteMetrics(ctx context.Context, log *slog.Logger, file string) {
	if file != "" && filepath.Ext(file) != ".prom" {
		log.LogAttrs(ctx, slog.LevelWarn, "node_exporter reads only files whose names end with .prom, so it will not read this one: give --metrics such a name", slog.String("path", file))
	}
}

// unwritable returns the error for a flag's file that cannot be written.
func unwritable(flag, path string, err error) error {
	if p := new(os.PathError); errors.As(err, &p) {
		err = p.Err // the path of the trial file would only confuse
	}
	kind, remedy := load.ErrUnusable, "give --"+flag+" a file in a folder that exists and that you can write to"
	if errors.Is(err, syscall.ENOSPC) {
		kind, remedy = load.ErrFailed, "free some space on that disk"
	}
	return &load.Error{Kind: kind, Op: "write the " + flag, Path: path, Remedy: remedy, Err: err}
}

// Write writes the reports of runs to the file of --report: one report, or a list for none or
// several. The file is JSON, or a page of HTML if its name says so.
func Write(file string, reports []*pipelines.Report) error {
	if err := CheckFile("report", file); file == "" || err != nil { // a device is never replaced
		return err
	}
	host, _ := os.Hostname() // "" if the system does not tell its name
	for _, r := range reports {
		if r.Version, r.Host = console.Version(), host; r.Forms == nil {
			r.Forms = []*pipelines.FormReport{} // [] and not null
		}
	}
	encode := asJSON
	if strings.EqualFold(filepath.Ext(file), ".html") {
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

func asJSON(reports []*pipelines.Report) ([]byte, error) {
	v := any(append([]*pipelines.Report{}, reports...)) // no reports are written as [], not null
	if len(reports) == 1 {
		v = reports[0]
	}
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}
