//go:build !windows

package report

import "github.com/google/renameio/v2"

// replace writes a file by a rename. A new file gets the mode metricsMode, whatever the umask is.
func replace(file string, data []byte) error {
	return renameio.WriteFile(file, data, metricsMode, renameio.IgnoreUmask())
}
