//go:build !duckdb

package built

// fileDatabases are the databases that are files of this host: none in the plain program.
func fileDatabases() []database { return nil }
