package output

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/reading"
	"github.com/formetl/formetl/transform"
)

// A run that rejects too many results writes nothing at its outputs, so its dead letters
// have no place there. The first of them are kept in the state folder, for the person who
// mends the schema. They hold what the pii rules leave, as all dead letters do.

const (
	// MostKeptLetters is how many dead letters of a run that wrote nothing are kept.
	MostKeptLetters = 100

	keptFolder = "rejects" // in the state folder
	// longestFormName bounds the part of a file's name that comes from the service.
	longestFormName = 100
)

// KeptLetters are the dead letters of a run that wrote nothing.
type KeptLetters struct {
	Path  string             // of the file; "" if there is none
	First []transform.Reject // the first of them, in the order of the file
}

// KeepLetters writes the first dead letters of the windows to a new file in the state
// folder. Only its owner may read it. It never replaces a file.
func KeepLetters(state, runID, form string, windows []*reading.Window) (KeptLetters, error) {
	var kept KeptLetters
	var lines []byte
	for _, w := range slices.SortedStableFunc(slices.Values(windows), byTime) {
		for _, r := range byID(w.Rejects) {
			if len(kept.First) == MostKeptLetters {
				break
			}
			var err error
			if lines, err = appendLetter(lines, w.Name(), r); err != nil {
				return kept, err
			}
			kept.First = append(kept.First, r)
		}
	}
	if len(kept.First) == 0 {
		return kept, nil
	}
	at, err := writeNew(filepath.Join(state, keptFolder), keptName(runID, form), lines)
	kept.Path = at
	return kept, err
}

// byTime compares windows by where they begin. Results without a date come last.
func byTime(a, b *reading.Window) int {
	if (a.Undated != nil) != (b.Undated != nil) {
		if a.Undated != nil {
			return 1
		}
		return -1
	}
	return a.Planned.Window.From.Compare(b.Planned.Window.From)
}

// keptName is the name of a file of dead letters, without its extension. The form's name
// comes from the service and can leave the folder in no way.
func keptName(runID, form string) string {
	form = url.PathEscape(form)
	return runID + "-" + form[:min(len(form), longestFormName)]
}

// writeNew writes a file that is not there yet. It returns the path.
func writeNew(folder, name string, data []byte) (string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		path := filepath.Join(folder, name+".jsonl")
		if n > 1 {
			path = filepath.Join(folder, fmt.Sprintf("%s-%d.jsonl", name, n))
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", errors.Join(err, os.Remove(path))
		}
		return path, nil
	}
}

// SweepLetters removes the files of KeepLetters that are older than a checkpoint may be,
// because they hold personal data. It returns their number. With dryRun it only counts.
func SweepLetters(state string, now time.Time, dryRun bool) (swept int) {
	folder := filepath.Join(state, keptFolder)
	entries, _ := os.ReadDir(folder) // empty if the folder does not exist
	for _, e := range entries {
		info, err := e.Info()
		ours := err == nil && info.Mode().IsRegular() && filepath.Ext(e.Name()) == ".jsonl"
		if !ours || now.Sub(info.ModTime()) <= checkpoint.KeepFor {
			continue
		}
		if dryRun || os.Remove(filepath.Join(folder, e.Name())) == nil {
			swept++
		}
	}
	if !dryRun {
		_ = os.Remove(folder) // fails if it is not empty
	}
	return swept
}
