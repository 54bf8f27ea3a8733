//go:build !duckdb

package tabletest

import "testing"

// serveReaders, moreTags and fileStores are for DuckDB, of which this build has nothing.
func serveReaders() {}

const moreTags = ""

func fileStores() map[string]func(t *testing.T) store { return nil }
