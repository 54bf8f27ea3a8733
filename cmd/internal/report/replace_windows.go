package report

import "github.com/google/renameio/v2/maybe"

// replace writes a file. On Windows a file cannot be replaced in one step.
func replace(file string, data []byte) error {
	return maybe.WriteFile(file, data, metricsMode)
}
