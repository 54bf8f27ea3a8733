//go:build linux || darwin

package upkeep

import (
	"math"
	"syscall"
)

// spaceAt returns the id of the file system that holds a folder, and how many bytes this user may
// still write to that file system.
func spaceAt(folder string) (id uint64, free int64, err error) {
	var at syscall.Stat_t
	var of syscall.Statfs_t
	if err := syscall.Stat(folder, &at); err != nil {
		return 0, 0, err
	}
	if err := syscall.Statfs(folder, &of); err != nil {
		return 0, 0, err
	}
	return uint64(at.Dev), int64(min(of.Bavail, math.MaxInt64/uint64(of.Bsize)) * uint64(of.Bsize)), nil //nolint:gosec,unconvert // the types differ between systems
}
