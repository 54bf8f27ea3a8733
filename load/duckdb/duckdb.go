//go:build duckdb

package duckdb

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/tables"
	"github.com/formetl/formetl/load/local"
)

// Scheme begins the addresses of tables.
const Scheme = "duckdb"

// folderSuffix ends the name of the folder beside a database.
const folderSuffix = ".formetl"

// Destination is a table of a database in a file. Several goroutines may use it at once.
type Destination struct {
	file   string // path of the database
	beside string // the folder beside it
	table  tables.Table
	folder *local.Destination // of the table, beside the database
	wait   time.Duration      // for somebody else who has the database open

	changes changes
}

var (
	_ load.Catalog     = (*Destination)(nil)
	_ load.Destination = (*Destination)(nil)
	_ load.Leaser      = (*Destination)(nil)
	_ load.Opener      = (*Destination)(nil)
	_ load.Replacer    = (*Destination)(nil)
	_ load.Sweeper     = (*Destination)(nil)
	_ load.Transactor  = (*Destination)(nil)
)

// Address returns the address of the database in a file, such as
// duckdb:///data/warehouse.duckdb.
func Address(file string) (string, error) {
	if file == "" || strings.HasSuffix(file, "/") {
		return "", errors.New("the path is not that of a file")
	}
	return Scheme + "://" + filepath.ToSlash(file), nil
}

// New returns the destination of a table. at is the table's address: that of the database,
// followed by the names of schema and table, such as
// duckdb:///data/warehouse.duckdb/main.feedback/. It opens nothing.
func New(at string) (*Destination, error) {
	path, ok := strings.CutPrefix(strings.TrimSuffix(at, "/"), Scheme+"://")
	slash := strings.LastIndexByte(path, '/')
	if !ok || slash < 1 {
		return nil, &load.CreateError{Op: "use", Path: at, Hint: "write duckdb:///path/of/the/file/schema.table/", Err: errors.New("it is not the address of a table")}
	}
	t, err := dialect().ParseTable(path[slash+1:])
	if err != nil {
		return nil, err
	}
	file, err := filepath.Abs(filepath.FromSlash(path[:slash]))
	if err != nil {
		return nil, &load.CreateError{Op: "use", Path: at, Hint: "give an absolute path", Err: err}
	}
	d := &Destination{file: file, beside: resolved(file) + folderSuffix, table: t, wait: waitFor}
	d.folder, err = local.New(filepath.Join(d.beside, t.Shown()))
	return d, err
}

// resolved returns a path without symbolic links. A database has one folder, with its locks,
// by whatever path it is reached.
func resolved(file string) string {
	if to, err := filepath.EvalSymlinks(file); err == nil {
		return to
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil { // the file is not there yet
		return filepath.Join(dir, filepath.Base(file))
	}
	return file
}

// database returns the address of the database.
func (d *Destination) database() string { return Scheme + "://" + filepath.ToSlash(d.file) }

// String returns the address of the table, for messages.
func (d *Destination) String() string { return d.database() + "/" + d.table.Shown() + "/" }

// inFolder tells whether an object lies in the folder beside the database.
func inFolder(name string) bool {
	return name == load.ControlFolder || strings.HasPrefix(name, load.ControlFolder+"/")
}
