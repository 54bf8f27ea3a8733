//go:build !linux && !darwin

package upkeep

import "errors"

// spaceAt returns errors.ErrUnsupported: on this system the free space of a disk is not looked up.
func spaceAt(string) (id uint64, free int64, err error) { return 0, 0, errors.ErrUnsupported }
