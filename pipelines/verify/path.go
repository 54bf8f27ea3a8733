package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/audit"
	"github.com/formetl/formetl/pipelines/account"
	"github.com/formetl/formetl/pipelines/definition"
)

// Path checks what lies at a path or URL. It is a dataset's folder if it ends with a
// slash, and otherwise a single file. Where no manifest lies, the report names datasets
// nearby. It names no run that mends something, because only a definition can. The error is
// a *NothingError where nothing lies at the path.
func Path(ctx context.Context, path string, o account.Options) (*audit.Report, error) {
	o = o.WithDefaults()
	out := definition.Output{Path: path}
	root, file := path, ""
	if !out.Dataset() {
		root, file = definition.SplitPath(path)
	}
	dest, err := o.Tables.Open(ctx, root, out)
	if err != nil {
		return nil, err
	}
	report, err := audit.Check(ctx, audit.Target{Dest: dest, Path: path, File: file, Format: o.Tables.Format})
	if err != nil {
		return nil, err
	}
	if report.Manifest != nil {
		return report, nil
	}
	there, err := isThere(ctx, dest, path, file)
	if report.Nothing() && !there {
		return nil, errors.Join(err, &NothingError{Path: path, Near: nearby(path)})
	}
	report.Mend = nil
	report.Notes = append(report.Notes, whatIsThere(path))
	return report, err
}

// NothingError means that nothing lies at a path that was to be checked.
type NothingError struct {
	Path string
	Near string // the folder of a dataset nearby, "" if there is none
}

// Error names the path, and what may have been meant.
func (e *NothingError) Error() string {
	text := "there is nothing at " + e.Path + ": name a definition, the folder of a dataset, or a file"
	if e.Near != "" {
		text += "; a dataset lies at " + e.Near
	}
	return text
}

// isThere tells whether anything lies at a path. file is the name of a single file at dest.
// At a store, only the dataset's parts and its manifest were looked for.
func isThere(ctx context.Context, dest load.Destination, path, file string) (bool, error) {
	if !strings.Contains(path, "://") {
		_, err := os.Stat(path)
		return err == nil, nil
	}
	if file == "" {
		return false, nil
	}
	objects, err := dest.List(ctx, file)
	return slices.ContainsFunc(objects, func(o load.Object) bool { return o.Name == file }), err
}

// whatIsThere says what to name instead of a path without a manifest.
func whatIsThere(path string) string {
	if near := nearby(path); near != "" {
		return "a dataset lies at " + near
	}
	return "name the folder of a dataset, or a file beside which a manifest lies (formetl export writes one with --manifest)"
}

// nearby returns the folder of a dataset around a local path or right below it, "" if
// there is none.
func nearby(path string) string {
	if strings.Contains(path, "://") {
		return ""
	}
	for folder := filepath.Dir(filepath.Clean(path)); ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, load.ManifestName)); err == nil {
			return folder + string(filepath.Separator)
		}
		if folder == filepath.Dir(folder) {
			break
		}
	}
	below, _ := filepath.Glob(filepath.Join(path, "*", load.ManifestName)) // of a bad pattern there is none
	if len(below) == 0 {
		return ""
	}
	return filepath.Dir(below[0]) + string(filepath.Separator)
}
