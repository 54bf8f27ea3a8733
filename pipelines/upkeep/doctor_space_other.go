//go:build !linux && !darwin

package upkeep

import "errors"

// spaceAt knows nothing on this system.
func spaceAt(string) (id uint64, free int64, err error) { return 0, 0, errors.ErrUnsupported }
