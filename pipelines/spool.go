package pipelines

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/gofrs/flock"
)

// spool is a run's folder in the state folder: the results of its windows as
// Arrow IPC streams, until every output is committed, and an index of them
// that another run can go on from (spoolindex.go). It holds personal data and
// is readable by its owner alone.
type spool struct {
	folder string
	lock   *flock.Flock
	made   bool // the state folder was made with it
	begun  bool // the index has a header
	taken  int  // attempts that runs before this one made, whose names may be in use
}

const (
	spoolLock = "lock"
	// spoolAge is how long a spool that can be gone on with is kept after its
	// last change: longer than an outage or a weekend, and no longer, because it
	// holds personal data that nobody looks after once the pipeline is gone.
	spoolAge = 7 * 24 * time.Hour
	// spoolTries bounds how often a folder is made because another run, which
	// ends or sweeps, removed it before it was locked.
	spoolTries = 100
)

// spoolsIn is the folder of a state folder's spools.
func spoolsIn(state string) string { return filepath.Join(state, "spool") }

// openSpool makes a folder for one form of a run and removes those of dead
// runs that nobody can go on with.
func openSpool(state, run string) (*spool, error) {
	parent := spoolsIn(state)
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
// run that finds its new folder removed makes another one. Folders that can be
// gone on with stay for a while.
func sweepSpools(parent string) (swept int) {
	for _, folder := range spools(parent) {
		empty := os.Remove(folder) == nil // its run died before the lock
		if empty || isUselessSpool(folder, func() error { return removeSpool(folder) }) {
			swept++
		}
	}
	return swept
}

// errLasting tells that a spool can be gone on with.
var errLasting = errors.New("the spool can be gone on with")

// isUselessSpool tells whether a folder's run is gone and no other can go on
// with it, and does what is to be done then while nobody can lock it. What
// lasts is not locked for it: whoever looks for it must not find it held.
func isUselessSpool(folder string, do func() error) bool {
	return !isLasting(folder) && isDeadSpool(folder, func() error {
		if isLasting(folder) { // since now
			return errLasting
		}
		return do()
	})
}

// isLasting tells whether a spool has a header and is young enough to be kept.
// One that was changed in the future was so by another clock: then it is kept
// no longer either.
func isLasting(folder string) bool {
	changed, err := spoolChanged(folder)
	return err == nil && time.Since(changed).Abs() <= spoolAge
}

// removeSpool deletes a folder, its header first: who is killed meanwhile
// leaves nothing to go on with.
func removeSpool(folder string) error {
	_ = os.Remove(filepath.Join(folder, spoolHeaderName)) // what is left tells why
	return os.RemoveAll(folder)
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
// state folder that was there before stays. With keep a folder whose index has
// a header stays too, for another run to go on with. One that could not be
// opened is nil, and has nothing to close.
func (s *spool) close(keep bool) error {
	if s == nil {
		return nil
	}
	if keep && s.begun {
		return s.fail(s.lock.Close())
	}
	err := errors.Join(removeSpool(s.folder), s.lock.Close())
	parent := filepath.Dir(s.folder)
	if os.Remove(parent) == nil && s.made {
		_ = os.Remove(filepath.Dir(parent)) // kept where it holds anything
	}
	return s.fail(err)
}

func (s *spool) fail(err error) error {
	if err == nil {
		return nil
	}
	return &SpoolError{Folder: s.folder, Err: err}
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
	files []segmentFile

	schema *arrow.Schema
	file   *os.File
	buffer *bufio.Writer
	writer *ipc.Writer
}

// segmentFile is one of a segment's files. Size and checksum are those of what
// was written: a file that a power cut tore has others.
type segmentFile struct {
	Name string `json:"name"` // in the spool's folder
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
}

// castagnoli is the table of CRC-32C, which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write notes what is written to the file.
func (f *segmentFile) Write(p []byte) (int, error) {
	f.Size += int64(len(p))
	f.CRC = crc32.Update(f.CRC, castagnoli, p)
	return len(p), nil
}

// segment begins a segment of a window, named by the attempt to read it. No
// two are named the same, also where an earlier run numbered windows and
// attempts alike. Nothing is created before the first batch.
func (s *spool) segment(window, attempt int) *segment {
	return &segment{spool: s, name: fmt.Sprintf("w%07d-%d", window, s.taken+attempt)}
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
	name := fmt.Sprintf("%s-%d%s", s.name, len(s.files), segmentExtension)
	file, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return s.fail(err)
	}
	s.files = append(s.files, segmentFile{Name: name})
	noting := io.MultiWriter(file, &s.files[len(s.files)-1]) // which stays where it is until the next file
	s.file, s.schema, s.buffer = file, schema, bufio.NewWriterSize(noting, 64<<10)
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

func (s *segment) fail(err error) error { return s.spool.fail(err) }

func (s *segment) path(name string) string { return filepath.Join(s.spool.folder, name) }

// remove deletes the segment's files.
func (s *segment) remove() {
	_ = s.close()
	for _, f := range s.files {
		_ = os.Remove(s.path(f.Name))
	}
	s.files = nil
}

// each gives the segment's batches in order. A batch is valid during the call.
func (s *segment) each(visit func(arrow.RecordBatch) error) error {
	for _, f := range s.files {
		read, err := eachBatch(s.path(f.Name), visit)
		if err != nil {
			return err
		}
		if read != nil {
			return s.fail(fmt.Errorf("%s: %w", f.Name, read))
		}
	}
	return nil
}

// eachBatch gives the batches of a file. read is why the file cannot be read,
// err is the error of visit.
func eachBatch(path string, visit func(arrow.RecordBatch) error) (read, err error) {
	file, read := os.Open(path)
	if read != nil {
		return read, nil
	}
	defer func() { _ = file.Close() }()
	r, read := ipc.NewReader(bufio.NewReaderSize(file, 256<<10))
	if read != nil {
		return read, nil
	}
	defer r.Release()
	for r.Next() {
		if err := visit(r.RecordBatch()); err != nil {
			return nil, err
		}
	}
	if read := r.Err(); read != nil && !errors.Is(read, io.EOF) {
		return read, nil
	}
	return nil, nil
}
