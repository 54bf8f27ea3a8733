package needs

import (
	"os"
	"syscall"
)

// FilesInMemory puts the temporary files of a package's tests in memory where the machine
// has 4 GiB for them, unless TMPDIR is set. Tests that sync thousands of small files
// spend most of their time on that. A TestMain calls it first.
func FilesInMemory() {
	const folder, enough = "/dev/shm", 4 << 30
	var there syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(folder, &there) != nil || there.Bavail*uint64(there.Bsize) < enough { //nolint:gosec // sizes are above 0
		return
	}
	probe, err := os.MkdirTemp(folder, "formetl-probe-")
	if err != nil {
		return // the folder is not for this user
	}
	_ = os.Remove(probe)
	_ = os.Setenv("TMPDIR", folder) // fails for a bad name only
}
