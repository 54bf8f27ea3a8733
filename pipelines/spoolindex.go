package pipelines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
)

// The index of a spool is what another run can go on from: a header with what
// the run decided before it read its first window, and a record of each window
// that was read. Each is a file of its own and is replaced in one step, so
// that a process which is killed leaves the one or the other. Nothing is
// synced to the disk: what a killed process has written stays in the page
// cache, and what a power cut tore shows by its size, its checksum or its JSON
// and costs that window only.
const (
	spoolHeaderName  = "header.json"
	spoolIndexName   = "index"
	segmentExtension = ".spool"
	recordExtension  = ".json"
	// spoolVersion is that of the index. Another one's is not read.
	spoolVersion = 2
)

// spoolHeader is what a spool that can be gone on with begins with.
type spoolHeader struct {
	Version     int               `json:"version"`
	RunID       string            `json:"run_id"`  // of the run whose frozen decisions Body holds
	Attempt     string            `json:"attempt"` // the process's own run that wrote it last
	OpenedAt    time.Time         `json:"opened_at"`
	Pipeline    string            `json:"pipeline"`
	Form        string            `json:"form"`
	Definition  string            `json:"definition"`      // absolute file of the definition, "" for an export
	Fingerprint string            `json:"fingerprint"`     // of what is extracted and of the columns: another one's windows are of no use
	Bases       map[string]string `json:"bases,omitempty"` // outputs' manifest versions by expanded path
	Body        json.RawMessage   `json:"body"`            // frozen
}

// check tells what makes a header useless.
func (h *spoolHeader) check() error {
	switch {
	case h.Version != spoolVersion:
		return fmt.Errorf("its version is %d, and this program reads %d", h.Version, spoolVersion)
	case load.CheckRun(h.RunID) != nil:
		return errors.New("it names no run")
	case h.Form == "" || h.Fingerprint == "" || h.OpenedAt.IsZero():
		return errors.New("its header is not whole")
	}
	return nil
}

// is tells whether the header is of a definition's form.
func (h *spoolHeader) is(pipeline, form, definition string) bool {
	return h.Pipeline == pipeline && h.Form == form && h.Definition == definition
}

// decodeHeader reads a header. With an error it holds what could be read.
func decodeHeader(data []byte) (spoolHeader, error) {
	var h spoolHeader
	if err := json.Unmarshal(data, &h); err != nil {
		return h, err
	}
	return h, h.check()
}

// begin writes the header. Before it, a spool is of no use to others; again,
// it replaces the header and leaves the records: they must fit it.
func (s *spool) begin(h spoolHeader) error {
	h.Version = spoolVersion
	if err := h.check(); err != nil {
		return s.fail(err) // a bug
	}
	data, err := json.Marshal(h)
	if err != nil {
		return s.fail(err)
	}
	if err := s.makeIndex(); err != nil {
		return s.fail(err)
	}
	if err := replaceFile(s.headerPath(), data, 0o600); err != nil {
		return s.fail(err)
	}
	s.begun = true
	s.touch()
	return nil
}

// makeIndex makes the folder of records where there is none.
func (s *spool) makeIndex() error {
	err := os.Mkdir(filepath.Join(s.folder, spoolIndexName), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (s *spool) headerPath() string { return filepath.Join(s.folder, spoolHeaderName) }

// touch notes the spool's last change, which decides how long it is kept: it
// is the header's time, so that one file tells it.
func (s *spool) touch() {
	now := time.Now()
	_ = os.Chtimes(s.headerPath(), now, now) // or it is kept for less long
}

// spoolChanged is when a spool with a header was last changed.
func spoolChanged(folder string) (time.Time, error) {
	info, err := os.Stat(filepath.Join(folder, spoolHeaderName))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// indexRecord is the record of a window that was read. That of results without
// a date has a range without bounds.
type indexRecord struct {
	Index   int           `json:"index"`
	BegunAt time.Time     `json:"begun_at"` // when its reading began
	Window  windowRecord  `json:"window"`
	Files   []segmentFile `json:"files,omitempty"` // none where it holds no rows
}

// decodeRecord reads the record of a window and checks that it agrees with
// itself. A key that it does not know is one that was damaged: a record without
// its added columns would not fit its files.
func decodeRecord(data []byte, index int) (indexRecord, error) {
	var r indexRecord
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("something follows its end")
	}
	if r.Index != index {
		return r, fmt.Errorf("it is the record of window %d", r.Index)
	}
	if _, err := r.Window.reading(); err != nil {
		return r, err
	}
	rng, rows := r.Window.Range, r.Window.Stats.Rows
	switch {
	case rows < 0 || r.Window.Replaced < 0 || !rng.From.IsZero() && !rng.From.Before(rng.To.Time):
		return r, fmt.Errorf("the record of the window %s does not agree with itself", spanOf(rng))
	case (rows > 0) != (len(r.Files) > 0):
		return r, fmt.Errorf("it holds %d rows in %d files", rows, len(r.Files))
	}
	seen := make(map[string]bool, len(r.Files))
	for _, f := range r.Files {
		if _, ok := segmentAttempt(f.Name); !ok || seen[f.Name] || f.Size <= 0 {
			return r, fmt.Errorf("%q is no file of it", f.Name)
		}
		seen[f.Name] = true
	}
	return r, nil
}

// segmentAttempt is the attempt in the name of a segment's file.
func segmentAttempt(name string) (attempt int, ok bool) {
	rest, isSegment := strings.CutPrefix(strings.TrimSuffix(name, segmentExtension), "w")
	parts := strings.Split(rest, "-")
	if !isSegment || len(parts) != 3 || !strings.HasSuffix(name, segmentExtension) {
		return 0, false
	}
	var numbers [3]int
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return 0, false
		}
		numbers[i] = int(n)
	}
	return numbers[1], true
}

// recordName is the file of a window's record in the index.
func recordName(index int) string { return fmt.Sprintf("%07d%s", index, recordExtension) }

// recordIndex is the window whose record a file is.
func recordIndex(name string) (index int, ok bool) {
	n, err := strconv.ParseUint(strings.TrimSuffix(name, recordExtension), 10, 31)
	return int(n), err == nil && name == recordName(int(n)) //nolint:gosec // of 31 bits
}

func (s *spool) recordPath(index int) string {
	return filepath.Join(s.folder, spoolIndexName, recordName(index))
}

// record notes a window's reading in one step, in place of that noted under
// the same index. A nil segment is that of a window without rows. What an
// earlier reading left is to be removed after it, not before.
func (s *spool) record(r indexRecord, seg *segment) error {
	if seg != nil {
		if err := seg.close(); err != nil {
			return err
		}
		r.Files = seg.files
	}
	data, err := json.Marshal(r)
	if err != nil {
		return s.fail(err)
	}
	if err := replaceFile(s.recordPath(r.Index), data, 0o600); err != nil {
		return s.fail(err)
	}
	s.touch()
	return nil
}

// forget removes the record of a window, if there is one.
func (s *spool) forget(index int) error {
	err := os.Remove(s.recordPath(index))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.fail(err)
}

// replaceFile writes a file of the state folder in one step.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	next := path + ".new"
	if err := os.WriteFile(next, data, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}
