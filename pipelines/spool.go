package pipelines

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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
	made   bool // the state folder was made with it
}

const (
	spoolLock = "lock"
	// spoolTries bounds how often a folder is made because another run, which
	// ends or sweeps, removed it before it was locked.
	spoolTries = 100
)

// openSpool makes a folder for one form of a run and removes those of dead runs.
func openSpool(state, run string) (*spool, error) {
	parent := filepath.Join(state, "spool")
	s := &spool{}
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		s.made = true
	}
	var err error
	for range spoolTries {
		if err = s.open(state, parent, run); err == nil {
			sweepSpools(parent)
			return s, nil
		}
		// A folder that goes while it is made can be told as one that exists.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return nil, &SpoolError{Folder: parent, Err: err}
}

// open makes and locks a folder. The error is fs.ErrNotExist where another run
// removed what was just made.
func (s *spool) open(state, parent, run string) error {
	if err := os.MkdirAll(state, 0o750); err != nil {
		return err
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(parent, run+"-")
	if err != nil {
		return err
	}
	lock := flock.New(filepath.Join(folder, spoolLock))
	ok, err := lock.TryLock()
	if err == nil && ok {
		if _, err = os.Stat(lock.Path()); err == nil { // or it was swept in between
			s.folder, s.lock = folder, lock
			return nil
		}
	}
	_ = lock.Close()
	_ = os.RemoveAll(folder)
	if err == nil {
		err = fs.ErrNotExist // a sweeper has the lock, and removes the folder
	}
	return err
}

// sweepSpools removes the folders whose runs are gone, and gives how many. A
// run that finds its new folder removed makes another one.
func sweepSpools(parent string) (swept int) {
	for _, folder := range spools(parent) {
		empty := os.Remove(folder) == nil // its run died before the lock
		if empty || isDeadSpool(folder, func() error { return os.RemoveAll(folder) }) {
			swept++
		}
	}
	return swept
}

// spools gives the runs' folders.
func spools(parent string) (folders []string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, filepath.Join(parent, e.Name()))
		}
	}
	return folders
}

// isDeadSpool tells whether a folder's run is gone, its lock free, and does
// what is to be done then while nobody can lock it.
func isDeadSpool(folder string, do func() error) bool {
	lock := flock.New(filepath.Join(folder, spoolLock), flock.SetFlag(os.O_RDWR))
	defer func() { _ = lock.Close() }() // it holds nothing
	free, err := lock.TryLock()
	dead := err == nil && free || errors.Is(err, fs.ErrNotExist)
	return dead && do() == nil
}

// close removes the folder, and the folders above that it leaves empty; a
// state folder that was there before stays.
func (s *spool) close() error {
	err := errors.Join(os.RemoveAll(s.folder), s.lock.Close())
	parent := filepath.Dir(s.folder)
	if os.Remove(parent) == nil && s.made {
		_ = os.Remove(filepath.Dir(parent)) // kept where it holds anything
	}
	if err != nil {
		return &SpoolError{Folder: s.folder, Err: err}
	}
	return nil
}

// SpoolError is a failure of the state folder.
type SpoolError struct {
	Folder string
	Err    error
}

// Error names the folder and what to do.
func (e *SpoolError) Error() string {
	first := "free space"
	if errors.Is(e.Err, fs.ErrPermission) || errors.Is(e.Err, syscall.EROFS) {
		first = "let this user write there"
	}
	return fmt.Sprintf("cannot spool results in %s: %v; %s, or choose another folder with --state", e.Folder, e.Err, first)
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
	ended, flushed, closed := s.writer.Close(), s.buffer.Flush(), s.file.Close()
	s.writer, s.file, s.buffer = nil, nil, nil
	return s.fail(cmp.Or(ended, flushed, closed)) // they tell of one cause
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
			return err
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
