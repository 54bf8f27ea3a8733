// Package duckdb is a destination in a file of DuckDB: the rows of a dataset are those of one
// table. It needs cgo, and is part of builds with the tag duckdb alone.
//
// DuckDB locks a file for the one process that writes to it. So the file is open for moments
// only. Beside warehouse.duckdb lies the folder warehouse.duckdb.formetl, with a folder for
// each table. There package local keeps what is staged, the lease, the record of a commit, and
// a checkpoint. The database itself holds the rows, and the tables _formetl_objects,
// _formetl_ids and _formetl_runs, as package tables describes them.
//
// A commit reads staged rows into a table in memory first. Then it opens the file, moves the
// rows within one transaction, together with the manifest and the removal of superseded parts,
// and closes the file. What lies in the folder is removed afterwards. If the process is killed
// before that, the record of the commit is still there, and doing it again changes nothing.
//
// While the file is open, others are refused, and whoever has it open refuses formetl. Both
// try again. Begin reading with Destination.with, then Destination.Transact.
package duckdb
