package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// leftSpool is the spool of a run that is gone. It is locked: no other run
// takes or sweeps it until it is adopted, discarded or released.
type leftSpool struct {
	header  spoolHeader
	records []spooledWindow // in the order of their indices
	// faults are what could not be taken over, for the log: windows that must
	// be read again, and other spools that were discarded.
	faults []error

	spool *spool
}

// spooledWindow is a window that a spool holds whole.
type spooledWindow struct {
	windowRecord // but for Stats.Seen, which is
	seen         packedSeen
	begunAt      time.Time // when its reading began
	index        int
	segment      *segment // nil where it has no rows
}

// spoolWait is how long a spool is waited for that somebody holds: whoever
// only looks holds it for an instant, a run until it ends.
const spoolWait = time.Second

// findSpool gives the newest spool that a dead run of the definition left of
// the form, nil if there is none, and removes older ones and any that cannot
// be read. An error tells why there is nothing to go on with where there was
// something, and is no reason to stop.
func findSpool(state, pipeline, form, definition string) (*leftSpool, error) {
	parent := spoolsIn(state)
	sweepSpools(parent)
	ours := func(folder string) bool {
		h, err := readHeader(folder)
		// A damaged header tells nobody's name: it is of use to nobody.
		return h.is(pipeline, form, definition) || err != nil && h.Form == "" && !isError[*os.PathError](err)
	}
	var found *leftSpool
	var faults []error
	for _, folder := range newestFirst(slices.DeleteFunc(spools(parent), func(f string) bool { return !ours(f) })) {
		s := lockLeft(folder)
		if s == nil {
			continue // a run holds it, or it is gone
		}
		h, err := readHeader(folder) // as it is now that nobody else can change it
		if err == nil && found == nil {
			found = &leftSpool{header: h, spool: s}
			continue
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("the spool %s of an earlier run cannot be gone on with, and is removed: %w", folder, err))
		}
		if err := s.close(false); err != nil {
			faults = append(faults, err)
		}
	}
	if found == nil {
		return nil, errors.Join(faults...)
	}
	found.faults = faults
	found.read()
	return found, nil
}

// readHeader reads the header of a spool. With an error it holds what could be read.
func readHeader(folder string) (spoolHeader, error) {
	data, err := os.ReadFile(filepath.Join(folder, spoolHeaderName))
	if err != nil {
		return spoolHeader{}, err
	}
	return decodeHeader(data)
}

// newestFirst sorts folders by their last change.
func newestFirst(folders []string) []string {
	changed := make(map[string]time.Time, len(folders))
	for _, f := range folders {
		changed[f], _ = spoolChanged(f) // one that is gone comes last
	}
	slices.SortStableFunc(folders, func(a, b string) int { return changed[b].Compare(changed[a]) })
	return folders
}

// lockLeft takes the spool of a dead run, nil where it cannot.
func lockLeft(folder string) *spool {
	ctx, cancel := context.WithTimeout(context.Background(), spoolWait)
	defer cancel()
	lock := flock.New(filepath.Join(folder, spoolLock), flock.SetFlag(os.O_RDWR))
	if ok, err := lock.TryLockContext(ctx, 2*time.Millisecond); err != nil || !ok {
		return nil
	}
	if _, err := os.Stat(lock.Path()); err != nil { // it was removed meanwhile
		_ = lock.Close()
		return nil
	}
	return &spool{folder: folder, lock: lock, begun: true}
}

// read takes over the windows whose records and files are whole.
func (l *leftSpool) read() {
	entries, err := os.ReadDir(filepath.Join(l.spool.folder, spoolIndexName))
	if err != nil {
		l.faults = append(l.faults, err)
	}
	used := map[string]int{} // files by the window that they are of
	var seen seenDictionary
	for _, e := range entries {
		index, ok := recordIndex(e.Name())
		if !ok {
			continue // of a write that was cut off
		}
		w, err := l.spool.window(index, used)
		if err == nil {
			err = w.pack(&seen)
		}
		if err != nil {
			l.faults = append(l.faults, fmt.Errorf("window %d of the spool of the run %s must be read again: %w", index, l.header.RunID, err))
			continue
		}
		l.records = append(l.records, w)
	}
	slices.SortFunc(l.records, func(a, b spooledWindow) int { return cmp.Compare(a.index, b.index) })
}

// window gives a window as its record says, and fails where its files do not
// hold what was written.
func (s *spool) window(index int, used map[string]int) (spooledWindow, error) {
	data, err := os.ReadFile(s.recordPath(index))
	if err != nil {
		return spooledWindow{}, err
	}
	r, err := decodeRecord(data, index)
	if err != nil {
		return spooledWindow{}, err
	}
	for _, f := range r.Files {
		if other, ok := used[f.Name]; ok {
			return spooledWindow{}, fmt.Errorf("%s is of window %d", f.Name, other)
		}
		if err := s.verify(f); err != nil {
			return spooledWindow{}, err
		}
	}
	w := spooledWindow{windowRecord: r.Window, begunAt: r.BegunAt, index: index}
	if len(r.Files) > 0 {
		w.segment = &segment{spool: s, files: r.Files}
	}
	for _, f := range r.Files {
		used[f.Name] = index
	}
	return w, nil
}

// pack moves what was seen of the rows into a dictionary: all windows of the
// spool are held at once.
func (w *spooledWindow) pack(d *seenDictionary) error {
	stats, err := w.Stats.stats()
	w.seen, w.Stats.Seen = d.pack(stats.Seen), nil
	return err
}

// verify tells whether a file holds what was written to it.
func (s *spool) verify(want segmentFile) error {
	file, err := os.Open(filepath.Join(s.folder, want.Name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != want.Size {
		return fmt.Errorf("%s has %d bytes, and %d were written", want.Name, info.Size(), want.Size)
	}
	sum := crc32.New(castagnoli)
	if _, err := io.CopyBuffer(sum, file, make([]byte, 256<<10)); err != nil {
		return err
	}
	if sum.Sum32() != want.CRC {
		return fmt.Errorf("%s does not hold what was written", want.Name)
	}
	return nil
}

// adopt makes the spool that of this run, still locked, with the segments that
// its windows have. What they do not need is removed. With an error it is still
// locked, for close.
func (l *leftSpool) adopt() (*spool, error) {
	s := l.spool
	keep := map[string]bool{spoolLock: true, spoolHeaderName: true, spoolIndexName: true}
	for _, w := range l.records {
		keep[filepath.Join(spoolIndexName, recordName(w.index))] = true
		if w.segment == nil {
			continue
		}
		for _, f := range w.segment.files {
			keep[f.Name] = true
			attempt, _ := segmentAttempt(f.Name) // checked with the record
			s.taken = max(s.taken, attempt+1)
		}
	}
	if err := s.makeIndex(); err != nil {
		return s, s.fail(err)
	}
	for _, sub := range []string{"", spoolIndexName} {
		entries, err := os.ReadDir(filepath.Join(s.folder, sub))
		if err != nil {
			return s, s.fail(err)
		}
		for _, e := range entries {
			name := filepath.Join(sub, e.Name())
			if keep[name] {
				continue
			}
			if err := os.RemoveAll(filepath.Join(s.folder, name)); err != nil {
				return s, s.fail(err)
			}
		}
	}
	return s, nil
}

// discard removes the spool.
func (l *leftSpool) discard() error { return l.spool.close(false) }

// release leaves the spool to others.
func (l *leftSpool) release() error { return l.spool.close(true) }

// keptSpool describes a spool with a header, for people.
type keptSpool struct {
	header  spoolHeader
	err     error // why the header cannot be read: nobody goes on with it
	folder  string
	windows int
	rows    int64
	bytes   int64
	changed time.Time
	held    bool // by a run
}

// keptSpools describes the spools that can be gone on with, or are held by a
// run that began their index, oldest first.
func keptSpools(state string) []keptSpool {
	var kept []keptSpool
	for _, folder := range slices.Backward(newestFirst(spools(spoolsIn(state)))) {
		changed, err := spoolChanged(folder)
		if err != nil {
			continue
		}
		k := keptSpool{folder: folder, changed: changed, held: !isDeadSpool(folder, func() error { return nil })}
		k.header, k.err = readHeader(folder)
		k.measure()
		kept = append(kept, k)
	}
	return kept
}

// measure adds up what the spool holds. What a run removes meanwhile does not count.
func (k *keptSpool) measure() {
	entries, _ := os.ReadDir(k.folder)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == segmentExtension {
			k.bytes += info.Size()
		}
	}
	entries, _ = os.ReadDir(filepath.Join(k.folder, spoolIndexName))
	for _, e := range entries {
		index, ok := recordIndex(e.Name())
		if !ok {
			continue
		}
		data, err := os.ReadFile(filepath.Join(k.folder, spoolIndexName, e.Name()))
		if err != nil {
			continue
		}
		if r, err := decodeRecord(data, index); err == nil {
			k.windows++
			k.rows += r.Window.Stats.Rows
		}
	}
}
