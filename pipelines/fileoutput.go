package pipelines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/formetl/formetl/load"
)

// StdoutPath is the path of the output that goes to standard output.
const StdoutPath = "-"

// fileOutput is one file, replaced whole. It is encoded from the spool when
// all windows are there.
type fileOutput struct {
	encoding
	path  string // for people
	name  string // in the destination
	dest  load.Destination
	lease load.Lease

	manifest *load.Manifest // of the last run, nil if there was none
	base     string         // its version
}

// openFile opens the destination that the file lies in.
func (f *formRun) openFile(ctx context.Context, def Output) (output, error) {
	e, err := f.encodingOf(def)
	if err != nil {
		return nil, err
	}
	expanded, err := ExpandPath(def.Path, pathValues(f.def, f.form, f.o.RunID))
	if err != nil {
		return nil, err
	}
	root, name := splitPath(expanded)
	o := &fileOutput{encoding: e, path: expanded, name: name}
	if o.dest, err = f.o.Tables.Open(ctx, root, def); err != nil {
		return nil, err
	}
	if o.lease, err = f.acquire(ctx, o.dest, name); err != nil {
		return nil, err
	}
	if err := o.recover(ctx); err != nil {
		return nil, errors.Join(err, o.close(context.WithoutCancel(ctx)))
	}
	return o, nil
}

// recover finishes what a dead run left and reads the manifest.
func (o *fileOutput) recover(ctx context.Context) error {
	if _, err := load.Recover(ctx, o.dest, o.name); err != nil {
		return err
	}
	m, version, err := load.ReadManifest(ctx, o.dest, load.FileManifestName(o.name))
	if errors.Is(err, load.ErrNotExist) {
		return nil
	}
	o.manifest, o.base = m, version
	return err
}

// splitPath divides a path or address into the folder and the last name.
func splitPath(p string) (root, name string) {
	if strings.Contains(p, "://") {
		i := strings.LastIndexByte(p, '/') // path.Dir would take one of the scheme's slashes
		return p[:i], p[i+1:]
	}
	return filepath.Dir(p), filepath.Base(p)
}

// acquire takes the lease of a destination that knows leases.
func (f *formRun) acquire(ctx context.Context, d load.Destination, scope string) (load.Lease, error) {
	l, ok := d.(load.Leaser)
	if !ok {
		return nil, nil
	}
	host, _ := os.Hostname() // shown to people only
	return l.Acquire(ctx, scope, load.Holder{RunID: f.o.RunID, Pipeline: f.def.Name, Host: host, PID: os.Getpid(), Since: f.o.Now().UTC()})
}

func (o *fileOutput) windowRead(context.Context, *windowRun) error { return nil }

func (o *fileOutput) commit(ctx context.Context) (OutputReport, error) {
	f := o.f
	report := OutputReport{Path: o.path}
	windows := f.ownWindows()
	columns := f.columns(windows)
	prepared, err := o.stage(ctx, o.dest, o.name, columns, windows, f.own.String())
	if err != nil {
		return report, fmt.Errorf("%s: %w", o.path, err)
	}
	letters, err := deadLetters(windows)
	if err != nil {
		return report, err
	}
	m := o.newManifest(columns)
	m.Range = load.Range{From: load.Wall(f.own.From), To: load.Wall(f.own.To)}
	part := load.Part{Path: o.name, From: m.Range.From, To: m.Range.To, Bytes: prepared.Bytes, SHA256: prepared.SHA256}
	part.Rows, part.MinID, part.MaxID = rowsOf(windows)
	m.Rows, m.Parts = part.Rows, []load.Part{part}
	commit := load.FileCommit{
		RunID: f.o.RunID, Manifest: m, Base: o.base, File: prepared,
		Objects: []load.SmallObject{{Name: load.FileRejectsName(o.name), Data: letters}},
	}
	if err := commit.Do(ctx, o.dest); err != nil {
		return report, errors.Join(fmt.Errorf("%s: %w", o.path, err), abortUnlessRecorded(ctx, o.dest, err, prepared))
	}
	report.Rows, report.Parts, report.Bytes = part.Rows, 1, part.Bytes
	return report, nil
}

// abortUnlessRecorded drops what was staged, unless the next run needs it to
// finish the commit.
func abortUnlessRecorded(ctx context.Context, d load.Stager, err error, staged ...load.Prepared) error {
	var c *load.CommitError
	if errors.As(err, &c) && c.Recorded {
		return nil
	}
	var failures []error
	for _, p := range staged {
		failures = append(failures, d.Abort(context.WithoutCancel(ctx), p))
	}
	return errors.Join(failures...)
}

func (o *fileOutput) close(ctx context.Context) error {
	if o.lease == nil {
		return nil
	}
	return o.lease.Release(ctx)
}

// ownWindows are the windows of the range that was asked for, without what a
// dataset's whole parts widened it by.
func (f *formRun) ownWindows() []*windowRun {
	if f.own == f.rng {
		return f.windows
	}
	var own []*windowRun
	for _, w := range f.windows {
		p := w.planned.Window
		before := !f.own.From.IsZero() && (p.From.IsZero() || p.From.Before(f.own.From))
		after := p.To.IsZero() || p.To.After(f.own.To)
		if w.isUndated() || !before && !after {
			own = append(own, w)
		}
	}
	return own
}

// rowsOf counts the rows of the windows and gives their smallest and largest id.
func rowsOf(windows []*windowRun) (rows, lowest, highest int64) {
	for _, w := range windows {
		if w.stats.Rows == 0 {
			continue
		}
		lo, hi := w.rowIDs()
		if rows == 0 || lo < lowest {
			lowest = lo
		}
		highest = max(highest, hi)
		rows += w.stats.Rows
	}
	return rows, lowest, highest
}

// streamOutput is standard output: encoded when all windows are there, so
// that a failed run has written nothing.
type streamOutput struct{ encoding }

func (f *formRun) openStream(def Output) (output, error) {
	e, err := f.encodingOf(def)
	if err != nil {
		return nil, err
	}
	return &streamOutput{e}, nil
}

func (o *streamOutput) windowRead(context.Context, *windowRun) error { return nil }

func (o *streamOutput) commit(ctx context.Context) (OutputReport, error) {
	windows := o.f.ownWindows()
	report := OutputReport{Path: StdoutPath, Parts: 1}
	counted := &countingWriter{w: o.f.o.Stdout}
	if err := o.encode(ctx, counted, o.f.columns(windows), windows, o.f.own.String()); err != nil {
		return report, &StdoutError{Err: err}
	}
	report.Rows, _, _ = rowsOf(windows)
	report.Bytes = counted.n
	return report, nil
}

func (o *streamOutput) close(context.Context) error { return nil }
