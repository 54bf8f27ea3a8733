package checkpoint

import (
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Versions before 2 of this program kept what they had read in folders below
// this one, each locked by its run.
const spoolName = "spool"

// DiscardSpools removes what runs of an older version had read and left in a
// state folder, and gives how many runs it was. It holds personal data, and no
// run resumes from it any more. What a live run of that version holds stays; with
// dryRun everything does.
func DiscardSpools(state string, dryRun bool) (discarded int) {
	parent := filepath.Join(state, spoolName)
	entries, _ := os.ReadDir(parent) // none where there is no such folder
	for _, e := range entries {
		if e.IsDir() && discardSpool(filepath.Join(parent, e.Name()), dryRun) {
			discarded++
		}
	}
	if !dryRun {
		_ = os.Remove(parent) // kept where it holds anything
	}
	return discarded
}

func discardSpool(at string, dryRun bool) bool {
	lock := filepath.Join(at, lockName)
	if _, err := os.Stat(lock); err == nil {
		file := flock.New(lock, flock.SetFlag(os.O_RDWR))
		defer func() { _ = file.Close() }()
		if free, err := file.TryLock(); !free || err != nil {
			return false
		}
	}
	return dryRun || os.RemoveAll(at) == nil
}
