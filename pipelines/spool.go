package pipelines

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/gofrs/flock"
)

// spool is a run's folder in the state folder: the results of its windows as
// Arrow IPC streams, until every output is committed. It holds personal data
// and is readable by its owner alone.
type spool struct {
	folder string
	lock   *flock.Flock
}

const spoolLock = "lock"

// openSpool makes a folder for one form of a run and removes those of dead runs.
func openSpool(state, run string) (*spool, error) {
	parent := filepath.Join(state, "spool")
	if err := errors.Join(os.MkdirAll(state, 0o750), os.MkdirAll(parent, 0o700)); err != nil {
		return nil, &SpoolError{Folder: parent, Err: err}
	}
	sweepSpools(parent)
	folder, err := os.MkdirTemp(parent, run+"-")
	if err != nil {
		return nil, &SpoolError{Folder: parent, Err: err}
	}
	lock := flock.New(filepath.Join(folder, spoolLock))
	if _, err := lock.TryLock(); err != nil {
		return nil, &SpoolError{Folder: folder, Err: err}
	}
	return &spool{folder: folder, lock: lock}, nil
}

// sweepSpools removes the folders whose runs are gone: their lock is free.
func sweepSpools(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		folder := filepath.Join(parent, e.Name())
		if _, err := os.Stat(filepath.Join(folder, spoolLock)); err != nil {
			continue // just being made
		}
		lock := flock.New(filepath.Join(folder, spoolLock))
		if free, err := lock.TryLock(); err == nil && free {
			_ = os.RemoveAll(folder)
			_ = lock.Unlock()
		}
	}
}

// close removes the folder, and the folders above that it leaves empty.
func (s *spool) close() error {
	err := errors.Join(os.RemoveAll(s.folder), s.lock.Unlock())
	parent := filepath.Dir(s.folder)
	if os.Remove(parent) == nil {
		_ = os.Remove(filepath.Dir(parent)) // kept where it holds anything
	}
	return err
}

// SpoolError is a failure of the state folder.
type SpoolError struct {
	Folder string
	Err    error
}

// Error names the folder and what to do.
func (e *SpoolError) Error() string {
	return fmt.Sprintf("cannot spool results in %s: %v; free space, or choose another folder with --state", e.Folder, e.Err)
}

// Unwrap returns the cause.
func (e *SpoolError) Unwrap() error { return e.Err }

// segment is one window's record batches on disk, as a file for every schema
// that the window's columns went through.
type segment struct {
	spool *spool
	name  string
	files []string

	schema *arrow.Schema
	file   *os.File
	buffer *bufio.Writer
	writer *ipc.Writer
}

// segment begins a window's segment. Nothing is created before the first batch.
func (s *spool) segment(window, attempt int) *segment {
	return &segment{spool: s, name: fmt.Sprintf("w%07d-%d", window, attempt)}
}

// write appends a batch.
func (s *segment) write(b arrow.RecordBatch) error {
	if b.NumRows() == 0 {
		return nil
	}
	if s.writer == nil || !s.schema.Equal(b.Schema()) {
		if err := s.next(b.Schema()); err != nil {
			return err
		}
	}
	return s.fail(s.writer.Write(b))
}

func (s *segment) next(schema *arrow.Schema) error {
	if err := s.close(); err != nil {
		return err
	}
	path := filepath.Join(s.spool.folder, fmt.Sprintf("%s-%d.spool", s.name, len(s.files)))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return s.fail(err)
	}
	s.files = append(s.files, path)
	s.file, s.schema, s.buffer = file, schema, bufio.NewWriterSize(file, 64<<10)
	s.writer = ipc.NewWriter(s.buffer, ipc.WithSchema(schema))
	return nil
}

// close ends the segment's last file. Closing twice is harmless.
func (s *segment) close() error {
	if s.writer == nil {
		return nil
	}
	err := errors.Join(s.writer.Close(), s.buffer.Flush(), s.file.Close())
	s.writer, s.file, s.buffer = nil, nil, nil
	return s.fail(err)
}

func (s *segment) fail(err error) error {
	if err == nil {
		return nil
	}
	return &SpoolError{Folder: s.spool.folder, Err: err}
}

// remove deletes the segment's files.
func (s *segment) remove() {
	_ = s.close()
	for _, f := range s.files {
		_ = os.Remove(f)
	}
	s.files = nil
}

// each gives the segment's batches in order. A batch is valid during the call.
func (s *segment) each(visit func(arrow.RecordBatch) error) error {
	for _, path := range s.files {
		if err := eachBatch(path, visit); err != nil {
			return fmt.Errorf("segment %s: %w", strings.TrimSuffix(filepath.Base(path), ".spool"), err)
		}
	}
	return nil
}

func eachBatch(path string, visit func(arrow.RecordBatch) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	r, err := ipc.NewReader(bufio.NewReaderSize(file, 256<<10))
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		if err := visit(r.RecordBatch()); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
